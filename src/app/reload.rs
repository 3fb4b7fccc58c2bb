//! Reloading: one reloader, asked by SIGHUP, by the admin server and by the watch.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};

use super::feeds::TopicsPart;
use super::limits::take_over;
use crate::clock::Clock;
use crate::config::{Key, Part, PartError, ReloadError, ReloadReport, Reloader, Settings};
use crate::gateway::control::Held;
use crate::gateway::{Gateway, Limits};
use crate::ops::{Outcomes, Reload};

/// The reloader, and what came of its last attempts.
pub(super) struct Reloads {
    reloader: Mutex<Reloader>,
    /// Whether there is a text to be loaded again; settings made from flags have none.
    has_source: bool,
    /// Where the gateway and the admin server listen, whatever the text says: flags come before
    /// it, and the system chooses for port 0.
    addresses: (SocketAddr, SocketAddr),
    outcomes: Mutex<Outcomes>,
    clock: Clock,
}

impl Reloads {
    /// Reloads of settings that came from a text.
    pub(super) fn of_file(
        reloader: Reloader,
        addresses: (SocketAddr, SocketAddr),
        gateway: &Arc<Gateway>,
        clock: &Clock,
    ) -> Self {
        Self::new(reloader, true, addresses, gateway, clock)
    }

    /// Settings made from flags: retuned at run time, never reloaded.
    pub(super) fn of_flags(
        reloader: Reloader,
        addresses: (SocketAddr, SocketAddr),
        gateway: &Arc<Gateway>,
        clock: &Clock,
    ) -> Self {
        Self::new(reloader, false, addresses, gateway, clock)
    }

    fn new(
        mut reloader: Reloader,
        has_source: bool,
        addresses: (SocketAddr, SocketAddr),
        gateway: &Arc<Gateway>,
        clock: &Clock,
    ) -> Self {
        reloader.add_part(GatewayPart { gateway: gateway.clone(), before: Mutex::new(None) });
        Self {
            reloader: Mutex::new(reloader),
            has_source,
            addresses,
            outcomes: Mutex::default(),
            clock: clock.clone(),
        }
    }

    /// Another part that follows the settings, from now on.
    pub(super) fn add_part(&self, make: impl FnOnce(&Settings) -> TopicsPart) {
        let mut reloader = self.lock();
        let part = make(reloader.effective());
        reloader.add_part(part);
    }

    fn lock(&self) -> MutexGuard<'_, Reloader> {
        self.reloader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file that is reloaded, if there is one.
    pub(super) fn path(&self) -> Option<PathBuf> {
        self.lock().source().path().map(ToOwned::to_owned)
    }

    /// Reloads, counts the outcome and logs it.
    pub(super) fn reload_because(&self, why: &str) -> Result<ReloadReport, ReloadError> {
        if !self.has_source {
            return Ok(ReloadReport {
                applied: Vec::new(),
                needs_restart: Vec::new(),
                same_text: true,
            });
        }
        // Held until the outcome is noted, so that the last one noted is the last one.
        let mut reloader = self.lock();
        let report = reloader.reload_from_source();
        let mut outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.record(&report, self.clock.wall());
        match &report {
            Ok(report) if report.same_text => {
                tracing::debug!(why, "reloaded: the file is the one loaded last");
            }
            Ok(report) => tracing::info!(
                why,
                applied = names(&report.applied),
                needs_restart = names(&report.needs_restart),
                "reloaded"
            ),
            Err(error) => {
                tracing::error!(why, %error, "not reloaded: the settings are as they were");
            }
        }
        report
    }
}

fn names(keys: &[Key]) -> String {
    keys.iter().map(Key::as_str).collect::<Vec<_>>().join(", ")
}

impl Reload for Reloads {
    fn reload(&self) -> Result<ReloadReport, ReloadError> {
        self.reload_because("the admin server")
    }

    fn retune(&self, changes: &Map<String, Value>) -> Result<ReloadReport, ReloadError> {
        let report = self.lock().retune(changes)?;
        let changes = Value::Object(changes.clone()).to_string();
        tracing::info!(changes, "retuned at run time");
        Ok(report)
    }

    fn effective(&self) -> Settings {
        let mut settings = self.lock().effective().clone();
        (settings.gateway.listen, settings.admin.listen) = self.addresses;
        settings
    }

    fn outcomes(&self) -> Outcomes {
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The gateway as a follower of the settings.
struct GatewayPart {
    gateway: Arc<Gateway>,
    /// What was in force before the last change, to be put back if a later part refuses.
    before: Mutex<Option<(Arc<Limits>, Held)>>,
}

impl Part for GatewayPart {
    fn name(&self) -> &str {
        "gateway"
    }

    fn apply(&self, _: &Settings, new: &Settings, changed: &[Key]) -> Result<(), PartError> {
        let control = self.gateway.control();
        // A dry run first: what cannot be changed is refused before anything is touched.
        take_over(&mut Limits::clone(&control.limits()), new, changed)?;
        *self.before.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((control.limits(), control.held()));
        control.change(|limits| take_over(limits, new, changed).unwrap_or_default());
        Ok(())
    }

    fn roll_back(&self, _: &Settings, _: &Settings, _: &[Key]) -> Result<(), PartError> {
        let before = self.before.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((limits, held)) = before {
            self.gateway.control().restore(&limits, &held);
        }
        Ok(())
    }
}

//! The running program: every part made, wired, and taken down again in order.
//!
//! Start: registries, gateway, sockets, feeds, then the one line that says it is ready. Stop, on
//! SIGTERM or SIGINT: not ready, no new subscribers, feeds end and their stages drain, newest
//! values and notices go out, connections close, and all of it within `shutdown_deadline`.

mod feeds;
mod limits;
pub mod mock;
mod record;
mod reload;
pub mod reproduce;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::config::{Reloader, Settings, Source, Watch, WatchTiming};
use crate::gateway::{Gateway, Parts};
use crate::ingest::Feeds;
use crate::market::{Accounts, Instruments, VolumeKeys};
use crate::ops::{self, Admin, Readiness, Reload as _};
use feeds::RunningFeeds;
pub use record::{RecordPlan, Recorded};
use reload::Reloads;

/// What to run.
#[derive(Debug)]
pub struct Plan {
    /// The settings in effect at the start.
    pub settings: Settings,
    /// Where they are loaded from again.
    pub source: Source,
    /// The text they were loaded from; `None` for settings made from flags, which nothing reloads.
    pub content: Option<Vec<u8>>,
    /// Whether to print the one line to try next.
    pub hint: bool,
}

/// A program that signals no longer kill, before anything is loaded.
#[derive(Debug)]
pub struct Program {
    runtime: tokio::runtime::Runtime,
    signals: Signals,
}

impl Program {
    /// To be called first: a SIGHUP that comes while the configuration is read must not kill. It
    /// is obeyed once the program runs, as SIGTERM and SIGINT are.
    ///
    /// # Errors
    ///
    /// If threads or handlers of signals cannot be had.
    pub fn prepare() -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("tidegate-io")
            .enable_all()
            .build()
            .context("starting the runtime")?;
        let signals = {
            let _inside = runtime.enter();
            Signals::new().context("listening for signals")?
        };
        Ok(Self { runtime, signals })
    }

    /// Runs until told to stop.
    ///
    /// # Errors
    ///
    /// If something cannot be started: an address in use, a recording that is missing.
    pub fn run(self, plan: Plan) -> anyhow::Result<()> {
        let Self { runtime, signals } = self;
        let served = runtime.block_on(serve(plan, signals));
        // Whatever still hangs, say a name being looked up, does not hold up the exit.
        runtime.shutdown_timeout(Duration::from_millis(200));
        served
    }
}

async fn serve(plan: Plan, mut signals: Signals) -> anyhow::Result<()> {
    let Plan { settings, source, content, hint } = plan;
    let clock = Clock::system();
    let listener = bind("gateway.listen", settings.gateway.listen)?;
    let admin_listener = bind("admin.listen", settings.admin.listen)?;
    let addresses = (listener.local_addr()?, admin_listener.local_addr()?);

    let parts = parts(&settings, &clock);
    let gateway = Gateway::start(parts, limits::of(&settings), settings.gateway.shards)
        .context("starting the shards")?;
    let gateway = Arc::new(gateway);
    let reloads = Arc::new(match content {
        Some(content) => {
            Reloads::of_file(Reloader::new(source, content)?, addresses, &gateway, &clock)
        }
        None => {
            let reloader = Reloader::with_settings(source, settings.clone());
            Reloads::of_flags(reloader, addresses, &gateway, &clock)
        }
    });
    let asked = reload_when_asked(reloads.clone())?;
    let _watch = watch(&reloads, &asked, &clock);

    let stop_listening = CancellationToken::new();
    let listening = tokio::spawn(gateway.listening(listener, stop_listening.clone()));
    // Opening a recording may take long, or never end; a wish to stop is heard meanwhile.
    let starting = {
        let (settings, gateway, clock) = (settings.clone(), gateway.clone(), clock.clone());
        tokio::task::spawn_blocking(move || feeds::start(&settings, &gateway, &clock))
    };
    let mut running = tokio::select! {
        started = starting => started.context("starting the feeds")?.context("starting the feeds")?,
        () = signals.stop_again() => return Ok(()),
    };
    reloads.add_part(|effective| running.take_part(effective));
    let stop_admin = CancellationToken::new();
    let readiness = Arc::new(Readiness::default());
    let admin =
        Admin { gateway: gateway.clone(), reload: reloads.clone(), readiness: readiness.clone() };
    let administering =
        tokio::spawn(ops::serve(admin_listener, ops::router(admin), stop_admin.clone()));
    readiness.set_ready();
    announce(addresses, hint);

    while matches!(signals.next().await, Told::Reload) {
        // Full: a reload waits that has read nothing yet, and will do for this one too.
        let _ = asked.try_send("SIGHUP");
    }

    readiness.set_shutting_down();
    stop_listening.cancel();
    let deadline = reloads.effective().gateway.shutdown_deadline;
    tracing::info!(?deadline, "shutting down");
    let closing = tokio::time::timeout(deadline, close(running, gateway.clone(), clock, deadline));
    tokio::select! {
        closed = closing => if closed.is_err() {
            tracing::warn!("not everything was closed by the deadline");
        },
        () = signals.stop_again() => tracing::warn!("told to stop again: not waiting"),
    }
    stop_admin.cancel();
    let _ = tokio::time::timeout(Duration::from_millis(200), administering).await;
    listening.abort();
    Ok(())
}

/// Ends the feeds, then the connections.
async fn close(running: RunningFeeds, gateway: Arc<Gateway>, clock: Clock, deadline: Duration) {
    let started = clock.now();
    // A third for the feeds' stages, so that the connections always have their share.
    let drained = tokio::task::spawn_blocking(move || running.stop(deadline / 3)).await;
    if drained.is_err() {
        tracing::error!("a feed could not be ended");
    }
    gateway.finish(deadline.saturating_sub(clock.now().since(started)));
    gateway.finished().await;
}

/// Pairs of account and instrument kept, at most: more than accounts, because an account trades
/// more than one instrument.
fn most_volumes(settings: &Settings) -> usize {
    const AN_ACCOUNT: usize = 16;
    const LEAST: usize = 1 << 16;
    const MOST: usize = 10_000_000;
    settings.gateway.max_known_accounts.saturating_mul(AN_ACCOUNT).clamp(LEAST, MOST)
}

fn parts(settings: &Settings, clock: &Clock) -> Parts {
    let names = settings.feeds.iter().map(|feed| (feed.name.clone(), feed.venue.clone()));
    parts_of(settings, names, clock)
}

/// The registries, as large as the settings say, and feeds of these names and venues.
fn parts_of(
    settings: &Settings,
    feeds: impl IntoIterator<Item = (String, String)>,
    clock: &Clock,
) -> Parts {
    Parts {
        clock: clock.clone(),
        instruments: Arc::new(Instruments::new(settings.gateway.max_known_instruments)),
        accounts: Arc::new(Accounts::new(settings.gateway.max_known_accounts)),
        volume_keys: Arc::new(VolumeKeys::new(most_volumes(settings))),
        feeds: Arc::new(Feeds::new(feeds, clock.wall())),
    }
}

/// Connections that the kernel keeps for a listener that is busy. The usual 128 are gone in a few
/// milliseconds when everybody comes back at once, and who finds no room tries again a second later.
const BACKLOG: u32 = 4096;

fn bind(key: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listen = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    listen().map_err(|error: io::Error| {
        let hint = match error.kind() {
            io::ErrorKind::AddrInUse => "; is another tidegate running? port 0 takes any free port",
            io::ErrorKind::AddrNotAvailable => "; the address is not one of this machine",
            _ => "",
        };
        anyhow::Error::new(error).context(format!("{key}: cannot listen on {address}{hint}"))
    })
}

/// A thread that reloads, one after another and off everybody else's: reading a file may block.
/// However many ask meanwhile, one reload more stands for all of them.
fn reload_when_asked(reloads: Arc<Reloads>) -> anyhow::Result<SyncSender<&'static str>> {
    let (ask, asked) = sync_channel(1);
    std::thread::Builder::new()
        .name("config-reload".to_owned())
        .spawn(move || {
            while let Ok(why) = asked.recv() {
                // Counted and logged there; nobody waits for the answer.
                let _ = reloads.reload_because(why);
            }
        })
        .context("starting the thread that reloads")?;
    Ok(ask)
}

/// Watches the configuration's file, if there is one.
fn watch(reloads: &Arc<Reloads>, asked: &SyncSender<&'static str>, clock: &Clock) -> Option<Watch> {
    const WHY: &str = "a change of the file";
    let path = reloads.path()?;
    let ask = asked.clone();
    let watch = Watch::start(&path, WatchTiming::default(), clock.clone(), move || {
        let _ = ask.try_send(WHY);
    });
    match watch {
        Ok(watch) => {
            // Nothing that was saved between loading and watching is missed.
            let _ = asked.try_send(WHY);
            Some(watch)
        }
        Err(error) => {
            tracing::warn!(%error, "the configuration is not watched; SIGHUP reloads it");
            None
        }
    }
}

/// The one line that says the program is ready; scripts read it.
fn announce((gateway, admin): (SocketAddr, SocketAddr), hint: bool) {
    let mut out = io::stdout().lock();
    // Nobody may be reading, which is no reason not to serve.
    let _ = writeln!(out, "tidegate is ready: subscribers {gateway}, admin {admin}");
    if hint {
        let _ = writeln!(
            out,
            "try: tidegate subscribe ws://{gateway}/v1/stream 'binance:*'   (or open http://{admin}/)"
        );
    }
    let _ = out.flush();
}

enum Told {
    Reload,
    Stop,
}

#[derive(Debug)]
struct Signals {
    hangup: Signal,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) -> Told {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => Told::Stop,
            _ = self.interrupt.recv() => Told::Stop,
            _ = self.hangup.recv() => Told::Reload,
        }
    }

    /// A second wish to stop; a hangup while stopping is ignored.
    async fn stop_again(&mut self) {
        while !matches!(self.next().await, Told::Stop) {}
    }
}

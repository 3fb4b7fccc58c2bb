//! From checked settings to the gateway's limits, and from changed keys to a change of them.

use std::time::Duration;

use crate::config::{Confirm as ConfirmSetting, Key, PartError, Settings};
use crate::gateway::{Confirm, Limits};

/// The limits that settings ask for.
pub(super) fn of(settings: &Settings) -> Limits {
    let (gateway, subscriber) = (&settings.gateway, &settings.subscriber);
    Limits {
        generation: 1,
        capacity: subscriber.capacity as usize,
        max_hz: f64::from(subscriber.max_hz),
        max_subscribers: gateway.max_subscribers as usize,
        confirm: match subscriber.confirm {
            ConfirmSetting::Pong => Confirm::Pong,
            ConfirmSetting::Client => Confirm::Client,
            ConfirmSetting::Flush => Confirm::Flush,
        },
        stall_timeout: subscriber.stall_timeout,
        heartbeat: gateway.heartbeat,
        pace: gateway.pace,
        max_instruments: subscriber.max_instruments,
        max_batch_bytes: subscriber.max_batch_bytes,
        max_in_flight: Duration::from_millis(subscriber.max_in_flight_ms.into()),
        max_message_bytes: subscriber.max_message_bytes,
        max_ops_per_s: subscriber.max_ops_per_s,
        handshake_timeout: gateway.handshake_timeout,
        max_header_bytes: gateway.max_header_bytes,
        allowed_origins: gateway.allowed_origins.clone(),
    }
}

/// Takes the changed keys' values over into `limits`; answers whether capacity and rate are among
/// them.
///
/// # Errors
///
/// A key that the running gateway cannot change; nothing has been taken over then.
pub(super) fn take_over(
    limits: &mut Limits,
    settings: &Settings,
    changed: &[Key],
) -> Result<(bool, bool), PartError> {
    let wanted = of(settings);
    let mut next = limits.clone();
    let mut set = (false, false);
    for key in changed {
        match key.as_str() {
            // Another part's.
            feed if feed.starts_with("feed.") => {}
            "subscriber.capacity" => {
                next.capacity = wanted.capacity;
                set.0 = true;
            }
            "subscriber.max_hz" => {
                next.max_hz = wanted.max_hz;
                set.1 = true;
            }
            "gateway.max_subscribers" => next.max_subscribers = wanted.max_subscribers,
            "subscriber.stall_timeout" => next.stall_timeout = wanted.stall_timeout,
            "gateway.heartbeat" => next.heartbeat = wanted.heartbeat,
            "gateway.pace" => next.pace = wanted.pace,
            "subscriber.max_instruments" => next.max_instruments = wanted.max_instruments,
            "subscriber.max_batch_bytes" => next.max_batch_bytes = wanted.max_batch_bytes,
            "subscriber.max_in_flight_ms" => next.max_in_flight = wanted.max_in_flight,
            "subscriber.max_message_bytes" => next.max_message_bytes = wanted.max_message_bytes,
            "subscriber.max_ops_per_s" => next.max_ops_per_s = wanted.max_ops_per_s,
            "gateway.allowed_origins" => {
                next.allowed_origins.clone_from(&wanted.allowed_origins);
            }
            // Read when the program stops.
            "gateway.shutdown_deadline" => {}
            other => return Err(format!("the running gateway cannot change {other}").into()),
        }
    }
    *limits = next;
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Effect, KEYS};

    #[test]
    fn every_hot_key_can_be_taken_over() {
        for info in KEYS.iter().filter(|info| info.effect == Effect::Hot) {
            let key = Key::hot(info.name).unwrap();
            let mut limits = Limits::default();
            let taken = take_over(&mut limits, &Settings::embedded(), &[key]);
            assert!(taken.is_ok(), "{}", info.name);
        }
    }

    #[test]
    fn the_documented_defaults_are_the_gateways_own() {
        assert_eq!(of(&Settings::embedded()), Limits::default());
    }
}

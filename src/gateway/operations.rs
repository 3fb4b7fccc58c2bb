//! What a client's operations do: subscribe, unsubscribe, list, rate, ack, ping.
//!
//! Every operation is answered once by its id: with an `ack` (or `list`, `pong`) for the part that
//! was done, and with an `error` for each kind of name that was refused. The rest of an operation
//! with a bad name still applies.

use std::borrow::Cow;

use super::Shared;
use super::control::Limits;
use super::outbox::Link;
use super::protocol::{self, ErrorCode, Name, Op, Request};
use super::session::Session;
use super::shard::owe_status;
use super::view::{Interest, View};
use crate::clock::Instant;
use crate::market::fill::is_account;
use crate::market::{FeedId, InstrumentId, Quote, Volume, VolumeId};

/// The account pattern that stands for all accounts.
const ALL_ACCOUNTS: &str = "*";

/// What an operation may touch besides its session.
pub(crate) struct Reach<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) limits: &'a Limits,
    pub(crate) quotes: &'a mut View<Quote>,
    pub(crate) volumes: &'a mut View<Volume>,
    pub(crate) now: Instant,
}

/// Obeys one text message and queues its answers.
pub(crate) fn obey<L: Link>(
    session: &mut Session<L>,
    index: u32,
    text: &str,
    reach: &mut Reach<'_>,
) {
    let now = reach.now;
    let request = match protocol::parse(text) {
        Ok(request) => request,
        Err(fault) => {
            session.spend(reach.limits, now);
            session.say(|out| {
                protocol::write_error("null", fault.code, &fault.message, &[], out);
            });
            session.strike(now);
            return;
        }
    };
    let Request { id, op } = request;
    if let Ok(Op::Ack { batch }) = op {
        // As many useful acks may come as batches went; they cost nothing of the budget.
        if !session.acknowledged(batch, now) {
            session.spend(reach.limits, now);
        }
        if id != "null" {
            answer(session, "ack", id, &[], reach);
        }
        return;
    }
    session.spend(reach.limits, now);
    if !session.is_open() {
        return;
    }
    match op {
        Ok(Op::Subscribe { names, max_hz }) => {
            if let Some(max_hz) = max_hz {
                session.wish(max_hz);
            }
            subscribe(session, index, id, names, reach);
        }
        Ok(Op::SubscribeVolume { accounts, max_hz }) => {
            if let Some(max_hz) = max_hz {
                session.wish(max_hz);
            }
            subscribe_volume(session, index, id, accounts, reach);
        }
        Ok(Op::Unsubscribe { names }) => unsubscribe(session, index, id, names, reach),
        Ok(Op::UnsubscribeVolume { accounts }) => {
            unsubscribe_volume(session, index, id, accounts, reach);
        }
        Ok(Op::List) => list(session, id, reach),
        Ok(Op::Rate { max_hz }) => {
            session.wish(max_hz);
            answer(session, "ack", id, &[], reach);
        }
        Ok(Op::Ping) => {
            let time = reach.shared.clock.wall();
            session.say(|out| protocol::write_pong(id, time, out));
        }
        Ok(Op::Ack { .. }) => {}
        Err(fault) => {
            session.say(|out| protocol::write_error(id, fault.code, &fault.message, &[], out));
        }
    }
}

fn answer<L: Link>(
    session: &mut Session<L>,
    kind: &str,
    id: &str,
    lists: protocol::Lists<'_>,
    reach: &Reach<'_>,
) {
    let effective = session.effective();
    let generation = reach.limits.generation;
    session.say(|out| protocol::write_answer(kind, id, lists, effective, generation, out));
}

/// Names that were refused, by reason.
#[derive(Default)]
struct Refused<'a> {
    unknown_venue: Vec<Cow<'a, str>>,
    malformed: Vec<Cow<'a, str>>,
    too_many: Vec<Cow<'a, str>>,
}

impl Refused<'_> {
    fn say<L: Link>(&self, session: &mut Session<L>, id: &str, reach: &Reach<'_>) {
        let venues = || reach.shared.venues.join(", ");
        let most = reach.limits.max_instruments;
        for (code, names, message) in [
            (
                ErrorCode::UnknownVenue,
                &self.unknown_venue,
                format!("no feed of that venue; there are: {}", venues()),
            ),
            (
                ErrorCode::MalformedName,
                &self.malformed,
                "a name is venue:SYMBOL, a pattern is venue:*".to_owned(),
            ),
            (
                ErrorCode::TooManyInstruments,
                &self.too_many,
                format!("a subscriber may have {most} instruments, and as many accounts"),
            ),
        ] {
            if !names.is_empty() {
                session.say(|out| protocol::write_error(id, code, &message, names, out));
            }
        }
    }
}

fn subscribe<L: Link>(
    session: &mut Session<L>,
    index: u32,
    id: &str,
    names: Vec<Cow<'_, str>>,
    reach: &mut Reach<'_>,
) {
    let (mut subscribed, mut waiting) = (Vec::new(), Vec::new());
    let mut refused = Refused::default();
    for name in names {
        let Some((venue, kind)) = protocol::classify(&name) else {
            refused.malformed.push(name);
            continue;
        };
        if !reach.shared.venues.iter().any(|known| known == venue) {
            refused.unknown_venue.push(name);
            continue;
        }
        reach.shared.feeds.want(venue);
        for feed in reach.shared.feeds.of_venue(venue) {
            owe_status(&mut session.status_due, feed);
        }
        match kind {
            Name::Instrument => match reach.shared.instruments.find(&name) {
                Some(instrument) => {
                    if reach.quotes.slot_of(instrument.0, index).is_none()
                        && session.quotes.len() + session.waiting.len()
                            >= reach.limits.max_instruments
                    {
                        refused.too_many.push(name);
                    } else if add_quote(session, index, instrument, reach.quotes, reach.now) {
                        subscribed.push(name);
                    } else {
                        waiting.push(name);
                    }
                }
                None if session.waiting.contains(&*name) => waiting.push(name),
                None if session.quotes.len() + session.waiting.len()
                    >= reach.limits.max_instruments =>
                {
                    refused.too_many.push(name);
                }
                None => {
                    session.waiting.insert(name.as_ref().into());
                    waiting.push(name);
                }
            },
            Name::Venue(venue) => {
                if !session.patterns.iter().any(|known| **known == *venue) {
                    session.patterns.push(venue.into());
                }
                let before = subscribed.len();
                let mut all_fit = true;
                for instrument in known_of(reach.shared, venue) {
                    if reach.quotes.slot_of(instrument.0, index).is_none()
                        && session.quotes.len() + session.waiting.len()
                            >= reach.limits.max_instruments
                    {
                        all_fit = false;
                        break;
                    }
                    if add_quote(session, index, instrument, reach.quotes, reach.now) {
                        let name = reach.shared.instruments.name(instrument).to_owned();
                        subscribed.push(name.into());
                    }
                }
                if !all_fit {
                    refused.too_many.push(name);
                } else if subscribed.len() == before {
                    waiting.push(name);
                }
            }
        }
    }
    if subscribed.len() + waiting.len() > 0 {
        answer(session, "ack", id, &[("subscribed", &subscribed), ("waiting", &waiting)], reach);
    }
    refused.say(session, id, reach);
}

fn known_of<'a>(shared: &'a Shared, venue: &'a str) -> impl Iterator<Item = InstrumentId> + 'a {
    #[expect(clippy::cast_possible_truncation, reason = "ids are 32 bits")]
    let count = shared.instruments.len() as u32;
    (0..count).map(InstrumentId).filter(move |&id| shared.instruments.venue(id) == venue)
}

/// Gives a session a slot for an instrument, unless it has one; answers whether the instrument has
/// a value.
pub(crate) fn add_quote<L: Link>(
    session: &mut Session<L>,
    index: u32,
    instrument: InstrumentId,
    quotes: &mut View<Quote>,
    now: Instant,
) -> bool {
    let topic = instrument.0;
    if quotes.slot_of(topic, index).is_none() {
        let slot = session.quotes.add(topic);
        let mirror = quotes.add(topic, Interest { session: index, slot });
        if mirror.tick > 0 {
            // Held since it was asked for, however old the value is.
            session.quotes.mark(slot, mirror.tick, now);
        }
    }
    quotes.mirror(topic).is_some_and(|mirror| mirror.tick > 0)
}

/// Gives a session a slot for a volume, unless it has one.
pub(crate) fn add_volume<L: Link>(
    session: &mut Session<L>,
    index: u32,
    volume: VolumeId,
    volumes: &mut View<Volume>,
    now: Instant,
) {
    let topic = volume.0;
    if volumes.slot_of(topic, index).is_none() {
        let slot = session.volumes.add(topic);
        let mirror = volumes.add(topic, Interest { session: index, slot });
        if mirror.tick > 0 {
            session.volumes.mark(slot, mirror.tick, now);
        }
    }
}

/// Whether a new instrument is one the session waits for, by name (which ends the wait) or pattern.
pub(crate) fn claims<L>(session: &mut Session<L>, name: &str) -> bool {
    if session.waiting.remove(name) {
        return true;
    }
    name.split_once(':')
        .is_some_and(|(venue, _)| session.patterns.iter().any(|pattern| **pattern == *venue))
}

/// Whether a volume belongs to an account the session follows.
pub(crate) fn wants_volume<L>(session: &Session<L>, shared: &Shared, volume: VolumeId) -> bool {
    let Some((account, _)) = shared.volume_keys.key(volume) else { return false };
    let account = shared.accounts.name(account);
    session.accounts.iter().any(|wanted| **wanted == *ALL_ACCOUNTS || **wanted == *account)
}

/// Whether a session is to be told of a feed's health.
pub(crate) fn follows<L>(session: &Session<L>, shared: &Shared, feed: FeedId) -> bool {
    let venue = shared.feeds.get(feed).venue();
    let of_venue = |name: &str| name.split_once(':').is_some_and(|(of, _)| of == venue);
    session.patterns.iter().any(|pattern| **pattern == *venue)
        || session.waiting.iter().any(|name| of_venue(name))
        || session
            .quotes
            .topics()
            .any(|(topic, _)| shared.instruments.owner(InstrumentId(topic)) == Some(feed))
}

fn unsubscribe<L: Link>(
    session: &mut Session<L>,
    index: u32,
    id: &str,
    names: Vec<Cow<'_, str>>,
    reach: &mut Reach<'_>,
) {
    let mut unsubscribed = Vec::new();
    let mut refused = Refused::default();
    let mut understood = false;
    for name in names {
        let Some((venue, kind)) = protocol::classify(&name) else {
            refused.malformed.push(name);
            continue;
        };
        understood = true;
        match kind {
            Name::Instrument => {
                let waited = session.waiting.remove(&*name);
                let known = reach.shared.instruments.find(&name);
                let dropped =
                    known.is_some_and(|known| drop_quote(session, index, known.0, reach.quotes));
                if dropped || waited {
                    unsubscribed.push(name);
                }
            }
            Name::Venue(_) => {
                let patterned = session.patterns.iter().position(|known| **known == *venue);
                if let Some(place) = patterned {
                    session.patterns.swap_remove(place);
                    unsubscribed.push(name.clone());
                }
                let prefix = format!("{venue}:");
                session.waiting.retain(|waiting| {
                    let goes = waiting.starts_with(&prefix);
                    if goes {
                        unsubscribed.push(waiting.to_string().into());
                    }
                    !goes
                });
                let topics: Vec<u32> = session.quotes.topics().map(|(topic, _)| topic).collect();
                for topic in topics {
                    let instrument = InstrumentId(topic);
                    if reach.shared.instruments.venue(instrument) == venue
                        && drop_quote(session, index, topic, reach.quotes)
                    {
                        let name = reach.shared.instruments.name(instrument).to_owned();
                        unsubscribed.push(name.into());
                    }
                }
            }
        }
    }
    if understood {
        answer(session, "ack", id, &[("unsubscribed", &unsubscribed)], reach);
    }
    refused.say(session, id, reach);
}

/// Takes a session's slot for an instrument; what was pending is counted as withdrawn.
fn drop_quote<L: Link>(
    session: &mut Session<L>,
    index: u32,
    topic: u32,
    quotes: &mut View<Quote>,
) -> bool {
    let Some(slot) = quotes.slot_of(topic, index) else { return false };
    let ticks = session.quotes.remove(slot, quotes.tick(topic));
    session.meters.received_before += ticks.received;
    session.meters.withdrawn += ticks.pending;
    quotes.remove(topic, Interest { session: index, slot });
    true
}

fn subscribe_volume<L: Link>(
    session: &mut Session<L>,
    index: u32,
    id: &str,
    accounts: Vec<Cow<'_, str>>,
    reach: &mut Reach<'_>,
) {
    let (asked, bad): (Vec<_>, Vec<_>) =
        accounts.into_iter().partition(|account| account == ALL_ACCOUNTS || is_account(account));
    let mut refused = Refused::default();
    let mut good = Vec::with_capacity(asked.len());
    for account in asked {
        let known = session.accounts.iter().any(|known| **known == *account);
        if !known && session.accounts.len() >= reach.limits.max_instruments {
            refused.too_many.push(account);
            continue;
        }
        if !known {
            session.accounts.push(account.as_ref().into());
        }
        good.push(account);
    }
    for feed in reach.shared.feeds.ids() {
        reach.shared.feeds.want(reach.shared.feeds.get(feed).venue());
    }
    for volume in known_volumes(reach.shared) {
        if wants_volume(session, reach.shared, volume) {
            add_volume(session, index, volume, reach.volumes, reach.now);
        }
    }
    if !good.is_empty() {
        answer(session, "ack", id, &[("accounts", &good)], reach);
    }
    refused.say(session, id, reach);
    refuse_accounts(session, id, &bad);
}

fn unsubscribe_volume<L: Link>(
    session: &mut Session<L>,
    index: u32,
    id: &str,
    accounts: Vec<Cow<'_, str>>,
    reach: &mut Reach<'_>,
) {
    let (good, bad): (Vec<_>, Vec<_>) =
        accounts.into_iter().partition(|account| account == ALL_ACCOUNTS || is_account(account));
    session.accounts.retain(|known| !good.iter().any(|account| **account == **known));
    let slots: Vec<(u32, u32)> = session.volumes.topics().collect();
    for (topic, slot) in slots {
        if !wants_volume(session, reach.shared, VolumeId(topic)) {
            session.volumes.remove(slot, reach.volumes.tick(topic));
            reach.volumes.remove(topic, Interest { session: index, slot });
        }
    }
    if !good.is_empty() {
        answer(session, "ack", id, &[("accounts", &good)], reach);
    }
    refuse_accounts(session, id, &bad);
}

fn refuse_accounts<L: Link>(session: &mut Session<L>, id: &str, bad: &[Cow<'_, str>]) {
    if !bad.is_empty() {
        let message = "an account name is 1 to 64 bytes without white space or quotes; * is all";
        session.say(|out| {
            protocol::write_error(id, ErrorCode::MalformedName, message, bad, out);
        });
    }
}

fn known_volumes(shared: &Shared) -> impl Iterator<Item = VolumeId> + use<> {
    #[expect(clippy::cast_possible_truncation, reason = "ids are 32 bits")]
    let count = shared.volume_keys.len() as u32;
    (0..count).map(VolumeId)
}

fn list<L: Link>(session: &mut Session<L>, id: &str, reach: &Reach<'_>) {
    let (mut subscribed, mut waiting) = (Vec::new(), Vec::new());
    for (topic, _) in session.quotes.topics() {
        let name = reach.shared.instruments.name(InstrumentId(topic)).to_owned().into();
        let has_value = reach.quotes.mirror(topic).is_some_and(|mirror| mirror.tick > 0);
        if has_value { &mut subscribed } else { &mut waiting }.push(name);
    }
    waiting.extend(session.waiting.iter().map(|name| Cow::Owned(name.to_string())));
    subscribed.sort_unstable();
    waiting.sort_unstable();
    let patterns: Vec<_> =
        session.patterns.iter().map(|venue| Cow::Owned(format!("{venue}:*"))).collect();
    let accounts: Vec<_> =
        session.accounts.iter().map(|account| Cow::Owned(account.to_string())).collect();
    let lists = [
        ("subscribed", &subscribed[..]),
        ("waiting", &waiting),
        ("patterns", &patterns),
        ("accounts", &accounts),
    ];
    answer(session, "list", id, &lists, reach);
}

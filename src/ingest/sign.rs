//! What a live feed is told of its messages, once they are decoded.

use crate::feed::live::{Reply, ReplyOutcome, Sign};
use crate::venue::{Answer, Class, Control, Outcome, Venue};

/// What a message of this class says of its connection. `repeated` says that it is, byte for byte,
/// the message before it; `heartbeats`, that the venue sends heartbeats of itself.
pub(crate) fn sign(
    venue: &Venue,
    class: Class,
    text: &[u8],
    repeated: bool,
    heartbeats: bool,
) -> Sign {
    match class {
        Class::Control(Control::Ack | Control::Error) => {
            Sign::Replies(venue.answers(text).into_iter().map(reply).collect())
        }
        // Heartbeats are alike by nature.
        Class::Control(Control::Heartbeat) if heartbeats => Sign::Alive,
        Class::Control(Control::Shutdown | Control::Expired) => Sign::Closing,
        Class::Quote | Class::Fill | Class::Unused(_) | Class::Unknown if !repeated => Sign::Alive,
        _ => Sign::Other,
    }
}

fn reply(answer: Answer) -> Reply {
    let Answer { request, channel, symbol, outcome } = answer;
    let outcome = match outcome {
        Outcome::Subscribed => ReplyOutcome::Granted,
        Outcome::Unsubscribed => ReplyOutcome::Released,
        Outcome::Held => ReplyOutcome::Held,
        Outcome::Done => ReplyOutcome::Done,
        // Asked for once too often, after an answer that was lost: it is what was wanted.
        Outcome::Refused(reason) if reason.to_ascii_lowercase().contains("already subscribed") => {
            ReplyOutcome::Granted
        }
        Outcome::Refused(reason) => ReplyOutcome::Refused(reason),
    };
    Reply { request, channel, symbol, outcome }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::venue::{Refusal, Unused, find};

    #[test]
    fn b21_data_and_heartbeats_are_life_repetitions_and_pongs_are_not() {
        let venue = find("kraken").unwrap();
        let is = |class, repeated, heartbeats| sign(venue, class, b"{}", repeated, heartbeats);
        assert_eq!(is(Class::Quote, false, true), Sign::Alive);
        assert_eq!(is(Class::Quote, true, true), Sign::Other);
        assert_eq!(is(Class::Unused(Unused::Repeat), false, false), Sign::Alive);
        assert_eq!(is(Class::Control(Control::Heartbeat), true, true), Sign::Alive);
        assert_eq!(is(Class::Control(Control::Heartbeat), false, false), Sign::Other);
        assert_eq!(is(Class::Refused(Refusal::DuplicateTrade), false, true), Sign::Other);
        assert_eq!(is(Class::Control(Control::Shutdown), false, true), Sign::Closing);
    }

    #[test]
    fn b12_an_answer_says_which_topic_it_is_about() {
        let venue = find("kraken").unwrap();
        let text = br#"{"method":"subscribe","req_id":3,"success":true,
            "result":{"channel":"trade","symbol":"BTC/USD","snapshot":true}}"#;
        let Sign::Replies(replies) = sign(venue, Class::Control(Control::Ack), text, false, true)
        else {
            panic!("it is an answer")
        };
        assert_eq!(
            replies,
            [Reply {
                request: Some("3".into()),
                channel: Some("trade".into()),
                symbol: Some("BTC/USD".into()),
                outcome: ReplyOutcome::Granted,
            }]
        );
    }
}

//! From raw messages to the workers: what every feed does with each message it receives.
//!
//! Decode, count, dispatch. The conflation worker keeps the newest quote of each instrument, the
//! coalescing worker folds every fill; both hand on to stages of their own, so a slow stage behind
//! them never holds up the feed.
//!
//! | module | holds |
//! |---|---|
//! | [`about`] | which messages of a recording are about an instrument |
//! | [`feeds`] | what is known of every feed: health, figures, whether somebody wants it |
//! | [`intake`] | decode, count, dispatch |
//! | [`player`] | recordings into intakes, a step at a time |
//! | [`run`] | the loop of a feed's thread |

pub mod about;
pub mod feeds;
pub mod intake;
pub mod player;
pub mod run;
pub(crate) mod sign;

pub use feeds::{Feed, FeedFigures, Feeds};
pub use intake::{Accepted, Intake};
pub use player::{Played, Player};

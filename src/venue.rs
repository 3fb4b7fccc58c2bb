//! Venue codecs: a venue's own bytes in, [`Event`]s out.
//!
//! A [`Codec`] is a state machine without I/O, clock or logging. It holds the newest state of each
//! instrument of its feed, because venues send partial updates: what it emits is always a complete
//! quote, so that keeping only the newest further down can never mix fields wrongly. Every message
//! gets exactly one [`Class`], so a feed's figures always add up.
//!
//! | module | holds |
//! |---|---|
//! | [`codec`](mod@codec) | the trait, its events, and the list of venues |
//! | [`answer`] | which request of which channel a venue granted or refused |
//! | [`class`] | what a message turned out to be, each with a stable label |
//! | [`dialect`] | how each venue is asked, over a live connection |
//! | [`desk`] | the venues' own side of it, for a mock venue |
//! | `json` | a borrowed scanner over JSON text: spans, no values |
//! | `members` | members and elements of a message, found in one pass |
//! | `read` | numbers, ids and times from such spans |
//! | `shell` | what is the same in every codec |
//! | `book` | the quote state of each symbol and the rules of order |
//! | `history`, `recents` | which fills and trades have been seen |
//! | `row` | a row of a message, read member by member |
//! | `report` | from an execution report to a fill |
//! | `binance`, `coinbase`, `kraken`, `bitstamp`, `bybit`, `okx`, `bitmex`, `deribit` | the venues |
//! | `fills` | our own lines of fills |
//!
//! # What each venue gives
//!
//! | venue | instrument | sides from | `last` from | quotes are guarded by | trades are told apart by |
//! |---|---|---|---|---|---|
//! | `binance`, `binance-usdm`, `binance-cm` | `BTCUSDT` | `bookTicker` | `trade`, `aggTrade` | update id `u` | rising id of each stream |
//! | `coinbase` (Exchange) | `BTC-USD` | `ticker`; no sizes before 2022 | `match`, `last_match`, `ticker` | `sequence` of the product | rising id, one for all three |
//! | `coinbase-advanced` | `BTC-USD` | `ticker` | `market_trades`; `ticker`, without a size | arrival | rising id; a ticker by its message's time |
//! | `kraken` (both interfaces) | `BTC/USD` | `ticker` | `trade`; `ticker`, in the second interface without a size | arrival | rising id in the second interface, none in the first |
//! | `bitstamp` | `btcusd` | top of `order_book` | `live_trades` | arrival | rising id |
//! | `bybit` (v5) | `BTCUSDT` | `tickers`, changes merged; `orderbook.1` | `publicTrade`; `tickers`, without a size | cross sequence (`cs`, `seq`), and `u` of the book | name, the last 10,000; ordered by time |
//! | `okx` (v5) | `BTC-USDT` | `tickers`, `bbo-tbt` | `trades`, `trades-all`, `tickers` | `seqId` of `bbo-tbt`; tickers by arrival | rising id of each channel |
//! | `bitmex` | `XBTUSD` | `quote` | `trade` | arrival | name, the last 10,000; ordered by time |
//! | `deribit` | `BTC-PERPETUAL` | `ticker`, `quote` | `trades`; `ticker`, without a size | arrival | rising `trade_seq` |
//!
//! Fills come from Binance (`executionReport`, `ORDER_TRADE_UPDATE`), Bybit (`execution`), BitMEX
//! (`execution`) and our own lines (`fills`, which gives no quotes). An execution counts once: by its
//! rising trade id at Binance, elsewhere by its name, one among the last 10,000 of an account's side
//! of an instrument. What the venue executes itself (liquidation by takeover, deleveraging,
//! settlement, funding) is counted apart, as `calculated`; what executes nothing, a cancel with a last
//! quantity and a trade of none included, as `order`. A venue that corrects an execution does so by
//! further reports; none of those read here takes volume back.
//!
//! The time of a quote is that of the message's market event where the venue tells one: not for
//! Binance's spot `bookTicker`, nor for the `ticker` of Kraken's first interface.
//!
//! # Our own lines of fills
//!
//! The venue `fills` is for publishers in the house: one JSON object a line.
//!
//! ```text
//! {"id":"f-1","account":"desk-1","instrument":"binance:BTCUSDT","side":"buy","price":"61837.63","quantity":"0.5","time":1723161256000}
//! ```
//!
//! | member | is |
//! |---|---|
//! | `id` | the fill's own id, text or number: of an account's instrument and side, one of the last 10,000 counts once |
//! | `account` | whose fill; may be left out if the feed's configuration says it |
//! | `instrument` | `venue:SYMBOL`, of any venue that is known here |
//! | `side` | `buy` or `sell`, as the account sees it |
//! | `price`, `quantity` | of this execution; text or numbers |
//! | `time` | when it was executed, in milliseconds since the Unix epoch; may be left out |
//! | `type` | `fill`, or left out; any other is unknown |
//!
//! # Rules that hold for every venue
//!
//! - *One accepted message, one tick*, changed or not; the counter rides in the quote. Of a message
//!   with several rows each row is one. A bad row is refused alone: the others count.
//! - Within a connection messages count as they arrive, guarded by the venue's own sequence or update
//!   id where there is one. A trade that is told again counts once, and one that is older than what is
//!   held never moves `last`. Rows of trades are read in the order of their ids, since venues send the
//!   newest first. An impossible time is treated as absent: it neither wins nor loses.
//! - An instrument is called as the venue's own requests call it, byte for byte. Where a venue has two
//!   names for one currency in use (Kraken's `XBT` and `XDG`), its newer one is taken.
//! - A member that is absent keeps what is held; `null` and `""` withdraw it, and are counted. Zero
//!   is a value, and a price may be negative. A size may not.
//! - Numbers may be quoted or not; they never pass through a float. What is not finite, or has more
//!   digits than can be kept exactly, refuses its message alone.
//! - Unknown members and values are counted and skipped; unknown streams are counted.
//! - What changes a quote that has not been told whole is dropped and counted (`no_snapshot`). A quote
//!   that a venue sends again only to show that the connection lives is no tick (`repeat`).
//! - A refused message changes nothing: no tick, no price, no order of ids.
//!
//! # Trade-offs
//!
//! JSON is validated whole, also in messages that are of no use here: a damaged line is then always
//! told from a useless one, at a cost of under half a nanosecond a byte. UTF-8 is checked only in
//! what is used: symbols and account names.

pub mod answer;
mod binance;
mod bitmex;
mod bitstamp;
mod book;
mod bybit;
pub mod class;
pub mod codec;
mod coinbase;
mod deribit;
pub mod desk;
pub mod dialect;
mod fills;
mod history;
mod json;
mod kraken;
mod members;
mod okx;
mod read;
mod recents;
mod report;
mod row;
mod shell;

pub use answer::{Answer, Outcome};
pub use class::{Class, Control, Oddities, Oddity, Refusal, Unused};
pub use codec::{Codec, Context, Decoded, Event, VENUES, Venue, codec, find};

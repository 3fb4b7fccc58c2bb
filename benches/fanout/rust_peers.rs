//! What a Rust user writes by hand: tokio-tungstenite over a `tokio::sync::broadcast`, its producer
//! in the process, on a runtime of one thread, since it has one core. Every connection's task takes
//! every quote and keeps those it wants; the text is shared, the frame is made for each. `each`
//! awaits a `send` a message; `flush` feeds what is there, then flushes once.

use std::collections::HashSet;
use std::io;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::broadcast::{self, Receiver, Sender};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::clock;
use super::publisher::{Walk, write_quote};

/// Quotes that may wait for the slowest connection; what is older is lost to it.
const CHANNEL: usize = 16 * 1024;

/// Messages fed before a flush.
const MOST_FED: usize = 256;

type Quote = (u32, Utf8Bytes);

/// The server's process: says its port and serves until it is killed.
pub fn serve(rate: u64, instruments: u32, flush: bool) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("ready {}", listener.local_addr()?.port());
        let (quotes, _) = broadcast::channel(CHANNEL);
        let (start, mut started) = tokio::sync::mpsc::channel::<()>(1);
        let producer = quotes.clone();
        tokio::spawn(async move {
            if started.recv().await.is_some() {
                produce(producer, rate, instruments).await;
            }
        });
        loop {
            let (stream, _) = listener.accept().await?;
            let (quotes, start) = (quotes.clone(), start.clone());
            tokio::spawn(async move {
                let _ = connection(stream, &quotes, &start, flush).await;
            });
        }
    })
}

async fn produce(quotes: Sender<Quote>, rate: u64, instruments: u32) {
    let (mut walk, mut ticks) = (Walk::default(), vec![0; instruments as usize]);
    let (began, mut made) = (clock::now(), 0_u64);
    let mut steps = tokio::time::interval(Duration::from_millis(1));
    loop {
        steps.tick().await;
        let step = (clock::now() - began) / 1_000_000;
        let due = step * rate / 1000;
        let wall = clock::wall();
        while made < due {
            made += 1;
            let stamp = began + (made * 1000).div_ceil(rate) * 1_000_000;
            let instrument = walk.next(instruments);
            ticks[instrument as usize] += 1;
            let mut text = Vec::with_capacity(256);
            write_quote(instrument, ticks[instrument as usize], stamp, wall, &mut text);
            let Ok(text) = Utf8Bytes::try_from(text) else { return };
            // Nobody may be listening yet.
            let _ = quotes.send((instrument, text));
            if made % 256 == 0 {
                tokio::task::yield_now().await;
            }
        }
    }
}

async fn connection(
    stream: TcpStream,
    quotes: &Sender<Quote>,
    start: &tokio::sync::mpsc::Sender<()>,
    flush: bool,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    stream.set_nodelay(true)?;
    let socket = tokio_tungstenite::accept_async(stream).await?;
    let (mut sink, mut source) = socket.split();
    let Some(Ok(wanted)) = source.next().await else { return Ok(()) };
    let wanted: Option<HashSet<u32>> = match wanted.to_text()? {
        "all" => None,
        list => Some(serde_json::from_str(list)?),
    };
    let wants = |id: u32| wanted.as_ref().is_none_or(|wanted| wanted.contains(&id));
    let start = start.clone();
    tokio::spawn(async move {
        while let Some(Ok(message)) = source.next().await {
            if message.to_text().is_ok_and(|text| text == "start") {
                let _ = start.try_send(());
            }
        }
    });
    let mut quotes = quotes.subscribe();
    loop {
        let Some((id, text)) = received(&mut quotes).await else { return Ok(()) };
        if !flush {
            if wants(id) {
                sink.send(Message::Text(text)).await?;
            }
            continue;
        }
        let mut fed = 0;
        let mut next = Some((id, text));
        while let Some((id, text)) = next {
            if wants(id) {
                sink.feed(Message::Text(text)).await?;
                fed += 1;
            }
            next = if fed < MOST_FED { at_hand(&mut quotes) } else { None };
        }
        if fed > 0 {
            sink.flush().await?;
        }
    }
}

/// The next quote; what was lost is passed over.
async fn received(quotes: &mut Receiver<Quote>) -> Option<Quote> {
    loop {
        match quotes.recv().await {
            Ok(quote) => return Some(quote),
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return None,
        }
    }
}

fn at_hand(quotes: &mut Receiver<Quote>) -> Option<Quote> {
    loop {
        match quotes.try_recv() {
            Ok(quote) => return Some(quote),
            Err(TryRecvError::Lagged(_)) => {}
            Err(TryRecvError::Empty | TryRecvError::Closed) => return None,
        }
    }
}

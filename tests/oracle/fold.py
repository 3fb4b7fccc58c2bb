"""What a recording leaves of each instrument, folded by another hand than the program's.

    fold.py VENUE < UNPACKED-RECORDING

Reads the lines of a recording (two kinds of captures, lines with a time before them, or messages
alone) and prints one JSON object: by instrument, the texts of the last bid, its size, ask, its size,
last, its size, and how many ticks led there. Numbers are never read as such: they are what stands
in the file. Only the standard library is used, and nothing of the program.

A venue is a function in VENUES: it is given a message (text) and the Books, and calls Book.take for
each row that changes something, in the order in which rows count.
"""

import json
import re
import sys
from datetime import datetime, timezone


def read(text):
    """JSON with every number as the text it was written as."""
    return json.loads(text, parse_float=str, parse_int=str)


class Book:
    """One instrument."""

    def __init__(self):
        self.sides = [None] * 4
        self.last = [None, None]
        self.ticks = 0
        self.sequence = None
        self.ids = {}
        self.last_from = None  # (stream, time)

    def take(self, bid=None, ask=None, trade=None, sequence=None):
        """A row: sides as (price, size), `()` for a side withdrawn, None for one not told; a trade as
        (stream, id or None, price, size, time or None). Returns whether it was a tick."""
        if sequence is not None and self.sequence is not None and sequence < self.sequence:
            return False
        if trade is not None and not self.trade(*trade) and bid is None and ask is None:
            return False
        for place, side in ((0, bid), (2, ask)):
            if side is not None:
                self.sides[place:place + 2] = list(side) if side else [None, None]
        if sequence is not None:
            self.sequence = sequence
        self.ticks += 1
        return True

    def trade(self, stream, number, price, size, time):
        """Whether the trade is new; moves `last` if it is not older than what is held."""
        if number is not None:
            if self.ids.get(stream, -1) >= number:
                return False
            self.ids[stream] = number
        if self.last_from is not None:
            held_stream, held_time = self.last_from
            if not (held_stream == stream and number is not None):
                if time is not None and held_time is not None and time < held_time:
                    return True
                if time is None and stream == "ticker" and held_stream != "ticker":
                    return True
        if stream == "ticker" and price == self.last[0] and size is None:
            size = self.last[1]
        self.last = [price, size]
        self.last_from = (stream, time)
        return True


class Books(dict):
    def __missing__(self, name):
        self[name] = Book()
        return self[name]


def nanoseconds(text):
    """An RFC 3339 time in UTC."""
    whole, _, rest = text.rstrip("Z").partition(".")
    seconds = int(datetime.fromisoformat(whole).replace(tzinfo=timezone.utc).timestamp())
    return seconds * 10**9 + int((rest + "0" * 9)[:9])


def side(row, price, size):
    """A side by the names of its members, if the row has it."""
    if price not in row:
        return None
    return (row[price], row.get(size)) if row[price] not in (None, "") else ()


def binance(text, books):
    message = read(text)
    if not isinstance(message, dict):
        return
    stream, event = message.get("stream", ""), message.get("data", message)
    kind = event.get("e") if isinstance(event, dict) else None
    # On spot the event has no name: its stream says it, or, sent without one, its members do.
    unnamed = kind is None and isinstance(event, dict) and {"s", "u", "b", "a"} <= event.keys()
    if kind == "bookTicker" or (kind is None and stream.endswith("@bookTicker")) or unnamed:
        book = books[event["s"]]
        book.take(side(event, "b", "B"), side(event, "a", "A"), sequence=int(event["u"]))
    elif kind in ("trade", "aggTrade"):
        number = int(event["t" if kind == "trade" else "a"])
        trade = (kind, number, event["p"], event["q"], int(event["T"]))
        books[event["s"]].take(trade=trade)


def coinbase(text, books):
    message = read(text)
    if message["type"] in ("match", "last_match"):
        time, number = nanoseconds(message["time"]), int(message["trade_id"])
        trade = ("trade", number, message["price"], message["size"], time)
        books[message["product_id"]].take(trade=trade)
    elif message["type"] == "ticker":
        trade = None
        if "price" in message:
            number = int(message["trade_id"]) if "trade_id" in message else None
            time = nanoseconds(message["time"]) if "time" in message else None
            stream = "ticker" if number is None else "trade"
            trade = (stream, number, message["price"], message.get("last_size"), time)
        books[message["product_id"]].take(
            side(message, "best_bid", "best_bid_size"),
            side(message, "best_ask", "best_ask_size"),
            trade,
            int(message["sequence"]),
        )


def coinbase_advanced(text, books):
    message = read(text)
    if message.get("channel") == "ticker":
        time = nanoseconds(message["timestamp"])
        for row in (row for event in message["events"] for row in event["tickers"]):
            trade = ("ticker", None, row["price"], None, time)
            books[row["product_id"]].take(
                side(row, "best_bid", "best_bid_quantity"),
                side(row, "best_ask", "best_ask_quantity"),
                trade,
            )
    elif message.get("channel") == "market_trades":
        rows = [row for event in message["events"] for row in event["trades"]]
        for row in sorted(rows, key=lambda row: int(row["trade_id"])):
            time = nanoseconds(row["time"])
            trade = ("trade", int(row["trade_id"]), row["price"], row["size"], time)
            books[row["product_id"]].take(trade=trade)


def kraken(text, books):
    def named(pair):
        new = {"XBT": "BTC", "XDG": "DOGE"}
        return "/".join(new.get(part, part) for part in pair.split("/"))

    message = read(text)
    if isinstance(message, list):
        if len(message) == 4 and message[2] == "ticker":
            row = message[1]
            trade = ("ticker", None, row["c"][0], row["c"][1], None)
            book = books[named(message[3])]
            book.take((row["b"][0], row["b"][2]), (row["a"][0], row["a"][2]), trade)
        elif len(message) == 4 and message[2] == "trade":
            for row in message[1]:
                seconds, fraction = row[2].split(".")
                time = int(seconds) * 10**9 + int((fraction + "0" * 9)[:9])
                books[named(message[3])].take(trade=("trade", None, row[0], row[1], time))
    elif message.get("channel") == "ticker":
        for row in message["data"]:
            time = nanoseconds(row["timestamp"]) if "timestamp" in row else None
            trade = ("ticker", None, row["last"], None, time) if "last" in row else None
            book = books[named(row["symbol"])]
            book.take(side(row, "bid", "bid_qty"), side(row, "ask", "ask_qty"), trade)
    elif message.get("channel") == "trade":
        for row in sorted(message["data"], key=lambda row: int(row["trade_id"])):
            time = nanoseconds(row["timestamp"])
            trade = ("trade", int(row["trade_id"]), row["price"], row["qty"], time)
            books[named(row["symbol"])].take(trade=trade)


def bitstamp(text, books):
    word = re.match(r"[a-z_]+ ", text)
    if word:  # of 2015
        event, data, market = word[0].strip(), read(text[word.end():]), "btcusd"
        channel = {"trade": "live_trades", "order_book": "order_book"}.get(event, "")
    else:
        message = read(text)
        if not isinstance(message, dict):
            return
        channel, data = message.get("channel", ""), message.get("data")
        event = message.get("event")
        channel, _, market = channel.rpartition("_")
    if channel == "live_trades" and event == "trade":
        price, size = data.get("price_str", data["price"]), data.get("amount_str", data["amount"])
        books[market].take(trade=("trade", int(data["id"]), price, size, None))
    elif channel == "order_book" and event in ("data", "order_book"):
        best = [tuple(levels[0][:2]) if levels else () for levels in (data["bids"], data["asks"])]
        books[market].take(*best)


def unseen(book, name):
    """Whether a trade's name, if it has one, is met for the first time."""
    names = book.__dict__.setdefault("names", set())
    if name in (None, "") or set(name) <= set("0-") and len(name) == 36:
        return True
    new = name.lower() not in names
    names.add(name.lower())
    return new


def levels(rows):
    """The best of a list of levels, `()` if there is none, None if there is no list."""
    return None if rows is None else tuple(rows[0][:2]) if rows else ()


def bybit(text, books):
    message = read(text)
    topic, data = message.get("topic", "").split("."), message.get("data")
    if topic[0] == "tickers":
        name = data["symbol"]
        delta = message["type"] == "delta"
        if delta and not (name in books and getattr(books[name], "told", False)):
            return
        if not {"bid1Price", "bid1Size", "ask1Price", "ask1Size", "lastPrice"} & data.keys():
            return
        book = books[name]
        sides = []
        for place, member in ((0, "bid1"), (2, "ask1")):
            if member + "Price" not in data and member + "Size" not in data:
                sides.append(None)
                continue
            price = data.get(member + "Price", book.sides[place])
            size = data.get(member + "Size", book.sides[place + 1])
            sides.append((price, size) if price not in (None, "") else ())
        trade = None
        if "lastPrice" in data:
            trade = ("ticker", None, data["lastPrice"], None, int(message["ts"]))
        if book.take(*sides, trade, int(message["cs"])):
            book.told = True
    elif topic[:2] == ["orderbook", "1"]:
        book, stamp = books[data["s"]], (int(data["u"]), int(data["seq"]))
        held = getattr(book, "stamp", None)
        if stamp == held or held is not None and stamp[0] < held[0] and stamp[0] != 1:
            return
        if stamp[0] == 1:
            book.sequence = None
        if book.take(levels(data.get("b")), levels(data.get("a")), sequence=stamp[1]):
            book.stamp = stamp
    elif topic[0] in ("publicTrade", "trade"):
        for row in data:
            book = books[row.get("s") or row["symbol"]]
            if unseen(book, row.get("i") or row.get("trade_id")):
                price, size = row.get("p") or row["price"], row.get("v") or row["size"]
                time = int(row.get("T") or row["trade_time_ms"])
                book.take(trade=("trade", None, price, size, time))


def okx(text, books):
    message = read(text)
    arg = message.get("arg", {})
    channel, rows = arg.get("channel"), message.get("data", [])
    if channel in ("trades", "trades-all"):
        for row in sorted(rows, key=lambda row: int(row["tradeId"])):
            trade = (channel, int(row["tradeId"]), row["px"], row["sz"], int(row["ts"]))
            books[row["instId"]].take(trade=trade)
    elif channel == "tickers":
        for row in rows:
            trade = ("ticker", None, row["last"], row["lastSz"], int(row["ts"]))
            bid, ask = side(row, "bidPx", "bidSz"), side(row, "askPx", "askSz")
            books[row["instId"]].take(bid, ask, trade)
    elif channel == "bbo-tbt":
        for row in rows:
            sequence = int(row["seqId"])
            books[arg["instId"]].take(levels(row["bids"]), levels(row["asks"]), sequence=sequence)


def bitmex(text, books):
    message = read(text)
    for row in message.get("data", []) if message.get("table") in ("quote", "trade") else []:
        book = books[row["symbol"]]
        if message["table"] == "quote":
            book.take(side(row, "bidPrice", "bidSize"), side(row, "askPrice", "askSize"))
        elif unseen(book, row.get("trdMatchID")):
            time = nanoseconds(row["timestamp"])
            book.take(trade=("trade", None, row["price"], row["size"], time))


def deribit(text, books):
    message = read(text)
    if message.get("method") != "subscription":
        return
    channel, data = message["params"]["channel"].split(".")[0], message["params"]["data"]
    if channel == "trades":
        for row in sorted(data, key=lambda row: int(row["trade_seq"])):
            number, time = int(row["trade_seq"]), int(row["timestamp"])
            trade = (channel, number, row["price"], row["amount"], time)
            books[row["instrument_name"]].take(trade=trade)
    elif channel in ("ticker", "quote"):
        trade = None
        if data.get("last_price") is not None:
            trade = ("ticker", None, data["last_price"], None, int(data["timestamp"]))
        books[data["instrument_name"]].take(
            side(data, "best_bid_price", "best_bid_amount"),
            side(data, "best_ask_price", "best_ask_amount"),
            trade,
        )


VENUES = {
    "binance": binance,
    "binance-usdm": binance,
    "binance-cm": binance,
    "coinbase": coinbase,
    "coinbase-advanced": coinbase_advanced,
    "kraken": kraken,
    "bitstamp": bitstamp,
    "bybit": bybit,
    "okx": okx,
    "bitmex": bitmex,
    "deribit": deribit,
}


def messages(lines):
    """The messages that were received, of a recording of whichever kind."""
    for line in lines:
        line = line.rstrip("\n")
        if line.startswith('{"t":'):
            record = json.loads(line)
            if record["t"] == "recv":
                yield record["data"]
        elif re.match(r"(wss|https)://\S+ (<->|<-|->) ", line):
            continue
        else:
            # A time and its text, or the text alone.
            timed = re.match(r"[0-9.]+:? ", line)
            yield line[timed.end():] if timed else line


def main():
    fold, books = VENUES[sys.argv[1]], Books()
    for text in messages(sys.stdin):
        if text and text.strip().lower() not in ("ping", "pong"):
            fold(text, books)
    held = {name: book.sides + book.last + [book.ticks] for name, book in books.items()}
    json.dump(held, sys.stdout, sort_keys=True)


if __name__ == "__main__":
    main()

"""Folds a raw capture of Bybit, OKX, BitMEX or Deribit to the last quote of each instrument.

Written apart from the codecs, over general JSON values, as the oracle of their tests. Usage:

    derivatives.py VENUE < CAPTURE

The capture is read as it is on disk, unpacked: JSON lines with `t` and `data`, or text lines
`<time>: <message>`. Prints one JSON object: by symbol, the texts of bid, bid size, ask, ask size,
last and last size, then how many ticks led there; under "" how many messages made ticks.
"""

import json
import re
import sys


def messages(lines):
    for line in lines:
        line = line.rstrip("\n")
        if line.startswith('{"t":'):
            record = json.loads(line)
            if record["t"] == "recv":
                yield record["data"]
        else:
            received = re.match(r"^\d+(?:\.\d+)?: (.*)$", line)
            if received:
                yield received.group(1)


class Quote:
    def __init__(self):
        self.bid = self.bid_size = self.ask = self.ask_size = self.last = self.last_size = None
        self.traded = None  # stream and time of the last price
        self.sequence = None
        self.highest = {}
        self.seen = set()
        self.ticks = 0

    def side(self, name, price, size):
        """Price and size that a message gives: a text, None (null), or KEPT."""
        if price is None or price == "":
            setattr(self, name, None)
            setattr(self, name + "_size", None)
            return
        if price is not KEPT:
            setattr(self, name, price)
        if size is not KEPT:
            setattr(self, name + "_size", size if size != "" else None)

    def price(self, stream, price, size, time, ordered=False):
        if self.traded is not None and not (ordered and self.traded[0] == stream):
            if time < self.traded[1]:
                return
        if stream == "ticker" and self.last is not None and float(self.last) == float(price):
            size = size if size is not None else self.last_size
        self.last, self.last_size, self.traded = price, size, (stream, time)

    def trade(self, stream, price, size, time, rising=None, name=None):
        """Whether the trade is a new one."""
        if rising is not None:
            if rising <= self.highest.get(stream, -1):
                return False
            self.highest[stream] = rising
        if name is not None:
            if name in self.seen:
                return False
            self.seen.add(name)
        self.price(stream, price, size, time, ordered=rising is not None)
        return True


KEPT = object()
held = {}


def quote(symbol):
    return held.setdefault(symbol, Quote())


def bybit(message):
    topic = message.get("topic", "").split(".")
    data, ticks = message.get("data"), 0
    if topic[0] == "tickers":
        known = {"bid1Price", "bid1Size", "ask1Price", "ask1Size", "lastPrice"}
        q = quote(data["symbol"])
        late = q.sequence is not None and int(message["cs"]) < q.sequence
        if not known & data.keys() or late:
            return 0
        q.sequence = int(message["cs"])
        for name, member in (("bid", "bid1"), ("ask", "ask1")):
            price, size = data.get(member + "Price", KEPT), data.get(member + "Size", KEPT)
            if price is not KEPT or size is not KEPT:
                q.side(name, price, size)
        if "lastPrice" in data:
            q.price("ticker", data["lastPrice"], None, int(message["ts"]))
        q.ticks += 1
        return 1
    if topic[0] in ("publicTrade", "trade"):
        for row in data:
            q = quote(row.get("s") or row.get("symbol"))
            time = int(row.get("T") or row.get("trade_time_ms"))
            price, size = row.get("p") or row.get("price"), row.get("v") or row.get("size")
            if q.trade("trades", price, size, time, name=row.get("i") or row.get("trade_id")):
                q.ticks += 1
                ticks += 1
    return ticks


def okx(message):
    channel, ticks = message.get("arg", {}).get("channel"), 0
    for row in message.get("data", []):
        if channel == "tickers":
            q = quote(row["instId"])
            q.side("bid", row["bidPx"], row["bidSz"])
            q.side("ask", row["askPx"], row["askSz"])
            q.price("ticker", row["last"], row["lastSz"], int(row["ts"]))
        elif channel == "trades":
            q = quote(row["instId"])
            rising = int(row["tradeId"])
            if not q.trade(channel, row["px"], row["sz"], int(row["ts"]), rising=rising):
                continue
        else:
            continue
        q.ticks += 1
        ticks += 1
    return ticks


def bitmex(message):
    table, ticks = message.get("table"), 0
    if table not in ("quote", "trade"):
        return 0
    for row in message["data"]:
        q = quote(row["symbol"])
        if table == "quote":
            q.side("bid", row.get("bidPrice", KEPT), row.get("bidSize", KEPT))
            q.side("ask", row.get("askPrice", KEPT), row.get("askSize", KEPT))
        # Times are texts of one length and zone, which sort as they are.
        elif not q.trade(table, row["price"], row["size"], row["timestamp"], name=row["trdMatchID"]):
            continue
        q.ticks += 1
        ticks += 1
    return ticks


def deribit(message):
    if message.get("method") != "subscription":
        return 0
    channel, data = message["params"]["channel"].split(".")[0], message["params"]["data"]
    ticks = 0
    if channel not in ("ticker", "quote", "trades"):
        return 0
    for row in data if isinstance(data, list) else [data]:
        q = quote(row["instrument_name"])
        if channel == "trades":
            rising = int(row["trade_seq"])
            if not q.trade(channel, row["price"], row["amount"], int(row["timestamp"]), rising=rising):
                continue
        else:
            q.side("bid", row["best_bid_price"], row["best_bid_amount"])
            q.side("ask", row["best_ask_price"], row["best_ask_amount"])
            if row.get("last_price") is not None:
                q.price("ticker", row["last_price"], None, int(row["timestamp"]))
        q.ticks += 1
        ticks += 1
    return ticks


def main():
    fold = {"bybit": bybit, "okx": okx, "bitmex": bitmex, "deribit": deribit}[sys.argv[1]]
    made = 0
    for text in messages(sys.stdin):
        try:
            message = json.loads(text, parse_float=str, parse_int=str)
        except ValueError:
            continue
        made += fold(message) > 0
    last = {
        symbol: [q.bid, q.bid_size, q.ask, q.ask_size, q.last, q.last_size, q.ticks]
        for symbol, q in held.items()
        if q.ticks
    }
    last[""] = made
    json.dump(last, sys.stdout)


if __name__ == "__main__":
    main()

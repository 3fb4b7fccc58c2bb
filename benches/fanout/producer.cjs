// Makes quotes at a rate, on an open-loop schedule of one step a millisecond: every quote of a step
// carries the moment at which the step was due. What the loop could not make in time is made up
// for, so a server that cannot keep up shows ever older quotes.

// Quotes made before others of the loop get their turn.
const A_TURN = 256;

const { readFileSync } = require("node:fs");

exports.producer = ({ rate, instruments, now, send, full, shape }) => {
    const heads = [];
    const ticks = new Array(instruments).fill(0);
    for (let id = 0; id < instruments; id += 1) {
        heads.push(`{"instrument":"binance:S${String(id).padStart(6, "0")}","tick":`);
    }
    let seed = 0x9e3779b9;
    const walk = () => {
        // xorshift: the same walk over the instruments for every server.
        seed ^= seed << 13;
        seed ^= seed >>> 17;
        seed ^= seed << 5;
        return (seed >>> 0) % instruments;
    };
    const one = (stamp, receive, id = walk()) => {
        ticks[id] += 1;
        send(
            id,
            `${heads[id]}${ticks[id]},"bid":"${stamp}","bid_size":"1.50000000","ask":"${stamp}.1","ask_size":"2.50000000",` +
                `"last":null,"last_size":null,"venue_time":null,"receive_time":${receive}}`,
        );
    };
    // A file of lines `NANOSECONDS INSTRUMENT`, played over and over; the last line is its length.
    const follow = (file) => {
        const lines = readFileSync(file, "utf8").trim().split("\n");
        const length = BigInt(lines.pop());
        const quotes = lines.map((line) => line.split(" ").map(Number));
        let began = now();
        let next = 0;
        const turn = () => {
            const gone = Number(now() - began);
            const receive = wall();
            for (let i = 0; i < A_TURN && next < quotes.length && quotes[next][0] <= gone; i += 1) {
                one(`${began + BigInt(quotes[next][0])}`, receive, quotes[next][1]);
                next += 1;
            }
            if (next === quotes.length) {
                began += length;
                next = 0;
            }
            if (quotes[next][0] <= Number(now() - began)) setImmediate(turn);
            else setTimeout(turn, 1);
        };
        turn();
    };
    const wall = () => `${Date.now()}000000`;

    let running = false;
    return () => {
        if (running) return;
        running = true;
        if (rate === 0 && !shape) {
            const turn = () => {
                if (full()) return void setTimeout(turn, 0);
                const stamp = `${now()}`;
                const receive = wall();
                for (let i = 0; i < 64; i += 1) one(stamp, receive);
                setImmediate(turn);
            };
            return turn();
        }
        if (shape) return follow(shape);
        const began = now();
        let made = 0;
        const turn = () => {
            const step = Number((now() - began) / 1000000n);
            const due = Math.floor((step * rate) / 1000);
            const until = Math.min(due, made + A_TURN);
            const receive = wall();
            while (made < until) {
                // The step at which this quote was due.
                const at = Math.ceil(((made + 1) * 1000) / rate);
                const stamp = `${began + BigInt(at) * 1000000n}`;
                const last = Math.min(until, Math.floor((at * rate) / 1000));
                while (made < last) {
                    one(stamp, receive);
                    made += 1;
                }
            }
            if (made < due) setImmediate(turn);
            else setTimeout(turn, 1);
        };
        turn();
    };
};

// A fan-out over the package `ws` under node, with its producer in the process: one `send` a client
// and quote, the frame built once for all (`ws` does so for a Buffer that is sent as text only as
// far as the payload goes), no compression.
//
//   node nodews.cjs RATE INSTRUMENTS all|own
const { WebSocketServer } = require(process.env.FANOUT_WS);
const { producer } = require("./producer.cjs");

const [rate, instruments, mode] = process.argv.slice(2);
const everybody = new Set();
const wanted = Array.from({ length: Number(instruments) }, () => new Set());
const server = new WebSocketServer({ port: 0, host: "127.0.0.1", perMessageDeflate: false }, () => {
    console.log(`ready ${server.address().port}`);
});
server.on("connection", (socket) => {
    socket._socket.setNoDelay(true);
    socket.on("message", (data) => {
        const text = data.toString();
        if (text === "start") run();
        else if (text === "all") everybody.add(socket);
        else for (const instrument of JSON.parse(text)) wanted[instrument].add(socket);
    });
    socket.on("error", () => {});
});

const run = producer({
    rate: Number(rate),
    instruments: Number(instruments),
    now: () => process.hrtime.bigint(),
    send: (id, text) => {
        const data = Buffer.from(text);
        for (const socket of mode === "all" ? everybody : wanted[id]) socket.send(data, { binary: false });
    },
    full: () => {
        for (const socket of server.clients) if (socket.bufferedAmount > 262144) return true;
        return false;
    },
});

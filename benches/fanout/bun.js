// A fan-out over Bun's own WebSocket server (uWebSockets inside), with its producer in the process:
// `server.publish(topic, text)`, no compression, one topic an instrument, or a single one when
// everybody wants everything.
//
//   bun bun.js RATE INSTRUMENTS all|own [SHAPE]
//
// A client's first message is "all" or a list of instruments; the message "start" starts the
// producer. RATE 0 publishes as fast as the clients take it. Nobody is dropped for being slow.
import { dlopen, ptr } from "bun:ffi";
import { producer } from "./producer.cjs";

const [rate, instruments, mode, shape] = process.argv.slice(2);
const libc = dlopen("libc.so.6", { clock_gettime: { args: ["i32", "ptr"], returns: "i32" } });
const timespec = new BigInt64Array(2);
const at = ptr(timespec);
const now = () => {
    libc.symbols.clock_gettime(1, at);
    return timespec[0] * 1000000000n + timespec[1];
};

const sockets = new Set();
const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request, server) => (server.upgrade(request) ? undefined : new Response("?", { status: 400 })),
    websocket: {
        perMessageDeflate: false,
        idleTimeout: 0,
        sendPings: false,
        maxPayloadLength: 16 << 20,
        backpressureLimit: 1 << 30,
        closeOnBackpressureLimit: false,
        open: (socket) => sockets.add(socket),
        close: (socket) => sockets.delete(socket),
        message: (socket, text) => {
            if (text === "start") run();
            else if (text === "all") socket.subscribe("all");
            else for (const instrument of JSON.parse(text)) socket.subscribe(`${instrument}`);
        },
    },
});

const run = producer({
    rate: Number(rate),
    instruments: Number(instruments),
    now,
    shape,
    send: mode === "all" ? (_, text) => server.publish("all", text) : (id, text) => server.publish(`${id}`, text),
    // At saturation nothing is published while somebody has much to take.
    full: () => {
        for (const socket of sockets) if (socket.getBufferedAmount() > 262144) return true;
        return false;
    },
});
console.log(`ready ${server.port}`);

// A proxy in front of a gateway that replaces only the stream of events by a full one. It sends 900
// rows of each class at once, then a row each second. A gateway takes 15 minutes to have 900 rows.
import { createServer, request as ask } from 'node:http';

const OUTCOMES = ['served', 'late', 'shed', 'throttled', 'expired', 'terminated', 'orphaned', 'upstream_error'];
const SHADOWS = ['run', 'refused', 'stopped', 'waiting'];
const ROWS = 900;

/** Starts the proxy. `names` are the names of the classes. */
export async function startFull(gateway, names) {
    const first = columns(names, 0, ROWS, Date.now());
    const streams = new Set();
    const server = createServer((request, answer) => {
        if (request.url === '/v1/events') return stream(request, answer);
        const to = ask(gateway.admin + request.url, { method: request.method, headers: request.headers }, from => {
            answer.writeHead(from.statusCode, from.headers);
            from.pipe(answer);
        });
        to.on('error', () => answer.destroy());
        request.pipe(to);
    });
    const stream = (_, answer) => {
        answer.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
        let number = ROWS;
        const send = (name, text) => answer.write(`id: 0-${number - 1}\nevent: ${name}\ndata: ${text}\n\n`);
        send('anew', JSON.stringify(first));
        const timer = setInterval(() => {
            number += 1;
            send('seconds', JSON.stringify(columns(names, number - 1, number, Date.now())));
        }, 1000);
        streams.add(answer);
        answer.once('close', () => (clearInterval(timer), streams.delete(answer)));
    };
    await new Promise(done => server.listen(0, '127.0.0.1', done));
    return {
        admin: `http://127.0.0.1:${server.address().port}`,
        bytes: JSON.stringify(first).length,
        close: () => (streams.forEach(one => one.destroy()), server.close()),
    };
}

/**
 * Returns the rows with the numbers `from` to `to`. The last row ends at `now`. Values have as many
 * digits as real ones.
 */
function columns(names, from, to, now) {
    const each = of => Array.from({ length: to - from }, (_, at) => of(from + at));
    const wave = (at, by) => 1 + Math.sin(at / (20 + by));
    return {
        step_s: 1,
        number: each(at => at),
        at_ms: each(at => now - (to - 1 - at) * 1000),
        lasted_ms: each(() => 1000),
        limit: each(() => 64),
        running: each(at => Math.round(30 * wave(at, 0))),
        waiting: each(at => Math.round(20 * wave(at, 3))),
        throttled_waiting: each(() => 0),
        oldest_ms: each(at => Math.round(400 * wave(at, 3))),
        lifo: each(() => false),
        mean_service_us: each(at => 41_234 + (at % 97)),
        sessions: each(() => 1234),
        bypassed: each(() => false),
        connections: each(() => 321),
        classes: names.map((name, of) => ({
            name,
            outcomes: Object.fromEntries(
                OUTCOMES.map((outcome, place) => [outcome, each(at => Math.round((place ? 2 : 40) * wave(at, of)))]),
            ),
            shadow: Object.fromEntries(SHADOWS.map(one => [one, each(() => 0)])),
            useful_ms: each(at => Math.round(1200 * wave(at, of))),
            wasted_ms: each(at => Math.round(200 * wave(at, of))),
            revenue: each(at => Math.round(300 * wave(at, of))),
            waiting: each(at => Math.round(3 * wave(at, of))),
            p50_ms: each(at => 20 + (at % 17) + 0.25),
            p99_ms: each(at => 200 + (at % 97) + 0.5),
            may_run_ms: of % 16 ? [] : each(at => 10_000 + 1000 * (at % 13)),
        })),
    };
}

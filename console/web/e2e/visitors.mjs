// A load generator that plays visitors of the shop for as long as a test lasts. It requests each
// page at a rate of its own, in waves, so that the cost of one page can be separated from the cost
// of the others. A few requests are hostile.
import { request as ask } from 'node:http';

export const HOSTILE = [
    '/search?q=<img+src=x+onerror=alert(1)>',
    '/item/1?x=</script><script>alert(2)</script>',
    '/item/2?x=%E2%80%AEgpj.exe',
    '/item/3?x=%1B[31mred',
    `/item/4?x=${'a'.repeat(512)}`,
];

export function startVisitors(gateway, rates = { '/search?q=tv': 24, '/item/7': 8, '/': 4, '/checkout/pay': 1 }) {
    const timers = Object.entries(rates).map(([path, rate], at) => {
        const wave = () => 1 + 0.8 * Math.sin(Date.now() / (9000 + 2500 * at));
        let owed = 0;
        return setInterval(() => {
            for (owed += (rate * wave()) / 10; owed >= 1; owed -= 1) visit(gateway, path);
        }, 100);
    });
    return () => timers.forEach(clearInterval);
}

/** Requests a page through node:http, because fetch would normalise hostile targets. */
export function visit(gateway, path, headers = {}) {
    const { hostname, port } = new URL(gateway.http);
    return new Promise(done => {
        const sent = ask({ hostname, port, path, headers, agent: false }, answer =>
            answer.resume().once('close', done),
        );
        sent.once('error', done);
        sent.end();
    });
}

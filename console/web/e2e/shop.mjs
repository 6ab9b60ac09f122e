// A small application behind the gateway. `node shop.mjs` prints the port on which it listens.
// /search takes much processor time; the other pages take hardly any.
import { createServer } from 'node:http';

const WORK_MS = { '/search': 12, '/slow': 2 };

const server = createServer((request, answer) => {
    const { pathname } = new URL(request.url ?? '/', 'http://shop');
    const until = performance.now() + (WORK_MS[pathname] ?? 0.2);
    while (performance.now() < until);
    const headers = { 'Content-Type': 'text/html', 'X-Order-Value': '30' };
    if (pathname === '/login') headers['Set-Cookie'] = `sid=${Math.random().toString(36).slice(2)}`;
    setTimeout(() => answer.writeHead(200, headers).end('<p>shop</p>'), pathname === '/slow' ? 1500 : 20);
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));

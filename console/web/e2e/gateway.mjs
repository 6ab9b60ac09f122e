// A real gateway in front of a real application, in a folder of its own. It comes with the link
// that `bywash console` prints for it.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../../..');
export const BINARY =
    process.env.BYWASH ?? resolve(process.env.CARGO_TARGET_DIR ?? join(ROOT, 'target'), 'debug/bywash');

/**
 * Starts a gateway. `classes` is the number of classes in addition to those of the shop. With
 * `socket`, the admin listener is a unix socket, and the browser reaches it through a tunnel.
 */
export async function startGateway({ mode = 'enforce', classes = 0, socket = false } = {}) {
    const folder = mkdtempSync(join(tmpdir(), 'bywash-console-'));
    const shop = await startShop();
    const [http, admin] = [await freePort(), await freePort()];
    const pid = join(folder, 'shop.pid');
    writeFileSync(pid, `${shop.process.pid}\n`);
    const config = join(folder, 'bywash.toml');
    const results = join(ROOT, 'lab/expected');
    const path = join(folder, 'admin.sock');
    const tunnel = socket ? startTunnel(admin, path) : undefined;
    writeFileSync(
        config,
        configuration({
            folder,
            shop,
            http,
            admin: socket ? `unix:${path}` : `127.0.0.1:${admin}`,
            pid,
            mode,
            classes,
            results,
        }),
    );
    const gateway = {
        folder,
        config,
        http: `http://127.0.0.1:${http}`,
        admin: `http://127.0.0.1:${admin}`,
        key: join(folder, 'operators.key'),
    };
    let process_ = await run(gateway);
    return {
        ...gateway,
        link: (...options) => link(gateway, options),
        /** Breaks every connection from browsers through the tunnel to the unix socket. */
        cut: () => tunnel?.cut(),
        stop: () => end(process_),
        start: async () => (process_ = await run(gateway)),
        close: async () => {
            tunnel?.close();
            await end(process_);
            await end(shop.process);
            rmSync(folder, { recursive: true, force: true });
        },
    };
}

const configuration = ({ folder, shop, http, admin, pid, mode, classes, results }) => `version = 1
mode = "${mode}"
log.access = "off"
state.directory = "${join(folder, 'state')}"
console.results = "${results}"

[listen]
http = "127.0.0.1:${http}"
admin = "${admin}"
operators_key = "${join(folder, 'operators.key')}"
workers = 1

[upstream]
server = "http://127.0.0.1:${shop.port}"
limit = 4

[scheduler]
capacity = 20

[resource.shop]
read = "process/node/cpu"
from = "${pid}"
capacity = 1

[class.login]
match = ["* /login"]
tier = "transaction"

[class.pay]
match = ["* /checkout/**"]
tier = "transaction"
revenue = 30

[class.search]
match = ["GET /search"]
cancellable = true
run_max = "30s"

[class.detail]
match = ["GET /item/**"]
${Array.from({ length: classes }, (_, at) => `\n[class.part-${at}]\nmatch = ["GET /part/${at}"]\n`).join('')}`;

function startTunnel(port, path) {
    const open = new Set();
    const server = createServer(from => {
        const to = connect(path);
        for (const [one, other] of [
            [from, to],
            [to, from],
        ]) {
            open.add(one);
            one.once('close', () => (open.delete(one), other.destroy())).on('error', () => {});
            one.pipe(other);
        }
    }).listen(port, '127.0.0.1');
    const cut = () => open.forEach(one => one.destroy());
    return { cut, close: () => (server.close(), cut()) };
}

async function startShop() {
    const child = spawn(process.execPath, [join(import.meta.dirname, 'shop.mjs')], {
        stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [port] = await new Promise(done => child.stdout.once('data', text => done([Number(text)])));
    return { process: child, port };
}

async function run({ folder, config, admin }) {
    const log = openSync(join(folder, 'gateway.log'), 'a');
    const child = spawn(BINARY, ['run', '--config', config], { stdio: ['ignore', log, log] });
    await until(async () => (await fetch(`${admin}/readyz`)).ok, 'the gateway is ready', 30_000);
    return child;
}

function link({ admin, key }, options) {
    const text = execFileSync(BINARY, ['console', '--admin', new URL(admin).host, '--key', key, ...options], {
        encoding: 'utf8',
    });
    const found = /http:\/\/\S+#\/login\/\S+/.exec(text);
    if (!found) throw new Error(`no link in: ${text}`);
    return found[0];
}

async function end(child) {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const over = new Promise(done => child.once('exit', done));
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), 10_000);
    await over;
    clearTimeout(timer);
}

function freePort() {
    const server = createServer();
    return new Promise(done =>
        server.listen(0, '127.0.0.1', () => {
            const { port } = server.address();
            server.close(() => done(port));
        }),
    );
}

/**
 * Waits up to `most` ms until `is` returns a true value, and returns that value. An exception of
 * `is` counts as false. Throws if the time is over.
 */
export async function until(is, what, most = 15_000) {
    const end = Date.now() + most;
    for (;;) {
        const value = await Promise.resolve()
            .then(is)
            .catch(() => undefined);
        if (value) return value;
        if (Date.now() > end) throw new Error(`not within ${most} ms: ${what}`);
        await new Promise(done => setTimeout(done, 100));
    }
}

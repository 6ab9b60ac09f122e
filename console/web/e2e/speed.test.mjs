// Measures the speed of the console with 64 classes, 900 rows of each, and 10,000 routes. The
// results are printed and not asserted, because they depend on the machine and on its load. With
// full streams, the load average is printed too.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { loadavg } from 'node:os';
import { startBrowser } from './browser.mjs';
import { startFull } from './full.mjs';
import { startGateway } from './gateway.mjs';
import { startVisitors } from './visitors.mjs';

const CLASSES = 59; // 64 with the shop's four and `other`
const ROUTES = 10_000;
let gateway, browser, stopVisitors;

before(async () => {
    gateway = await startGateway({ classes: CLASSES });
    browser = await startBrowser();
    stopVisitors = startVisitors(
        gateway,
        Object.fromEntries(Array.from({ length: CLASSES }, (_, at) => [`/part/${at}`, 0.5])),
    );
});
after(async () => {
    stopVisitors?.();
    await browser?.close();
    await gateway?.close();
});

const watchTasks = () => {
    window.tasks = [];
    new PerformanceObserver(list =>
        window.tasks.push(...list.getEntries().map(one => Math.round(one.duration))),
    ).observe({ type: 'longtask', buffered: true });
};
/** Prints the tasks that kept the page busy for more than 50 ms while `meanwhile` ran. */
async function longTasks(page, meanwhile) {
    await page.evaluate(() => (window.tasks = []));
    await meanwhile();
    const tasks = await page.evaluate(() => window.tasks);
    return `${tasks.length} tasks over 50 ms${tasks.length ? `, the longest ${Math.max(...tasks)} ms` : ''}`;
}

test('figures', async context => {
    const folder = resolve(import.meta.dirname, '../../dist');
    const sizes = ['console.js', 'console.css', 'index.html'].map(
        name => gzipSync(readFileSync(resolve(folder, name)), { level: 9 }).length,
    );
    context.diagnostic(`gzipped: ${sizes.join(' + ')} = ${sizes.reduce((sum, one) => sum + one)} bytes`);

    const { page, faults } = await browser.open();
    await page.addInitScript(watchTasks);
    await page.goto(gateway.link('--by', 'ana'));
    await page.locator('.state').waitFor();
    for (const at of ['first', 'second']) {
        if (at === 'second') await page.reload();
        await page.locator('.state').waitFor();
        const ready = await page.evaluate(() => performance.now());
        const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime);
        context.diagnostic(
            `${at} visit: first contentful paint ${Math.round(paint)} ms, rows on the page within ${Math.round(ready)} ms`,
        );
    }
    await page.evaluate(() => (location.hash = '#/classes'));
    await page.locator('main tbody tr').nth(63).waitFor();
    context.diagnostic(`64 classes, 10 s: ${await longTasks(page, () => page.waitForTimeout(10_000))}`);
    const first = page.locator('thead button').nth(2);
    const clicks = [];
    for (let at = 0; at < 5; at += 1) {
        clicks.push(
            await page.evaluate(
                button =>
                    new Promise(done => {
                        const begun = performance.now();
                        button.click();
                        requestAnimationFrame(() => setTimeout(() => done(performance.now() - begun)));
                    }),
                await first.elementHandle(),
            ),
        );
    }
    context.diagnostic(`64 classes, a click on a head until it is drawn: ${clicks.map(Math.round).join(', ')} ms`);

    const routes = Array.from({ length: ROUTES }, (_, at) => ({
        pattern: `/route/${at}/*?page`,
        requests_per_s: 100 / (at + 1),
        lasts_s: 0.1,
        slots: 10 / (at + 1),
        bytes_per_s: 1000,
        by_one: 0.1,
        transacts: false,
        elephant: null,
    }));
    await page.route('**/v1/routes', route =>
        route.fulfill({ json: { routes, others: { ...routes[0], pattern: '' } } }),
    );
    const shown = await longTasks(page, async () => {
        await page.evaluate(() => (location.hash = '#/elephants?tab=routes'));
        await page.getByText('/route/0/*?page').first().waitFor();
        await page.waitForTimeout(1000);
    });
    context.diagnostic(`${ROUTES} routes come: ${shown}`);
    assert.ok((await page.locator('main tbody tr').count()) < 100, 'only what is seen is drawn');
    const scrolled = await longTasks(page, async () => {
        for (let at = 0; at < 40; at += 1) {
            await page
                .locator('.table.many')
                .evaluate((table, at) => (table.scrollTop = (at * table.scrollHeight) / 40), at);
            await page.waitForTimeout(50);
        }
        await page.locator('.table.many').evaluate(table => (table.scrollTop = table.scrollHeight));
        await page.getByText('/route/9999/*?page').first().waitFor();
    });
    context.diagnostic(`${ROUTES} routes, scrolled to the end: ${scrolled}`);
    const filtered = await longTasks(page, async () => {
        await page.getByRole('searchbox').pressSequentially('777', { delay: 100 });
        await page.getByText('/route/7777/*?page').first().waitFor();
    });
    context.diagnostic(`${ROUTES} routes, filtered: ${filtered}`);
    assert.deepEqual(faults, []);
});

test('figures of 64 classes with 900 rows each (the stream is made up, the rest is the gateway)', async context => {
    const headers = { Authorization: `Bearer ${gateway.link('--by', 'ana').split('/login/')[1]}` };
    const status = await (await fetch(`${gateway.admin}/v1/status`, { headers })).json();
    const full = await startFull(
        gateway,
        status.classes.map(one => one.name),
    );
    const { page, faults, context: visitor } = await browser.open();
    await page.addInitScript(watchTasks);
    const load = () => loadavg()[0].toFixed(1);
    await page.goto(gateway.link('--by', 'ana').replace(gateway.admin, full.admin));
    await page.locator('.state').waitFor();
    await page.waitForTimeout(3000);
    const tasks = await page.evaluate(() => window.tasks);
    context.diagnostic(
        `${status.classes.length} classes, ${Math.round(full.bytes / 1e5) / 10} MB of rows, load: ${tasks.length} tasks over 50 ms (${tasks.join(', ')}); load average ${load()}`,
    );
    for (const hash of ['now', 'classes?window=15m', 'saved', 'elephants']) {
        const come = await longTasks(page, async () => {
            await page.evaluate(hash => (location.hash = hash), `#/${hash}`);
            await page.waitForTimeout(1500);
        });
        const stay = await longTasks(page, () => page.waitForTimeout(10_000));
        context.diagnostic(`${hash}: comes with ${come}; then 10 s with ${stay}; load average ${load()}`);
    }
    assert.deepEqual(faults, []);
    await visitor.close();
    full.close();
});

// Tests of the console in a real Chromium with a real gateway. Each view appears in both themes and
// on a small screen, without errors and accessible to everyone. Text from clients is never
// interpreted as markup. An operator without a valid token learns what to do.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { axe, screenshot, startBrowser } from './browser.mjs';
import { startGateway, until } from './gateway.mjs';
import { HOSTILE, startVisitors, visit } from './visitors.mjs';

let gateway, browser, stopVisitors;
/**
 * A page whose token is valid for a minute, the shortest possible time. Other tests run until the
 * token expires.
 */
let aging;

before(async () => {
    gateway = await startGateway();
    browser = await startBrowser();
    aging = await browser.open();
    await aging.page.goto(gateway.link('--by', 'ana', '--for', '1m'));
    await aging.page.locator('.state').waitFor();
    stopVisitors = startVisitors(gateway);
    await beHostile();
});
const beHostile = async () => {
    for (const path of HOSTILE)
        await visit(gateway, path, {
            Cookie: 'sid="><script>alert(3)</script>',
            'User-Agent': '<img src=x onerror=alert(4)>',
        });
};
after(async () => {
    stopVisitors?.();
    await browser?.close();
    await gateway?.close();
});

const VIEWS = {
    now: /Are orders getting through/,
    classes: /Which classes are affected/,
    why: /Why was this request/,
    elephants: /What should I throttle/,
    saved: /How much work was useful/,
    sessions: /What do sessions do/,
    policy: /What is in force/,
    fleet: /How do the gateways share/,
    lab: /What did the laboratory measure/,
};
const MORE = {
    'classes/search': /Class search/,
    'elephants?tab=routes': /What should I throttle/,
    'lab/flash-crowd.json?with=paper-1-table.json': /laboratory/,
    'elephants/1': /Elephant 1/,
    'now?range=24h': /Are orders/,
    'saved?window=24h': /How much work/,
};
const LOOKS = [{ theme: 'light' }, { theme: 'dark' }, { theme: 'light', width: 360, height: 740 }];

/**
 * Returns the number of pixels by which the page is too wide. Tables have scroll bars of their own
 * and do not count.
 */
const tooWide = page =>
    page.evaluate(() => {
        const main = document.querySelector('main');
        return Math.max(document.documentElement.scrollWidth - innerWidth, main.scrollWidth - main.clientWidth);
    });

/** Opens a page as the operator ana, and waits until it shows the state. */
async function enter(options, ...words) {
    const opened = await browser.open(options);
    await opened.page.goto(gateway.link('--by', 'ana', ...words));
    await opened.page.locator('.state').waitFor();
    return opened;
}
const go = async (page, hash) => {
    await page.evaluate(hash => (location.hash = hash), `#/${hash}`);
    await page.waitForTimeout(150);
};

test('a link lets in, and its token does not stay in the address bar', async () => {
    const { page, faults, context } = await enter();
    assert.match(page.url(), /#\/now$/);
    assert.match(await page.locator('.operator').innerText(), /ana/);
    await page.reload();
    await page.locator('.state').waitFor();
    assert.deepEqual(faults, []);
    await context.close();
});

test('each view is there, without a fault, for everybody, in both themes and small', async () => {
    await until(async () => (await enterOnce()) > 0, 'an elephant was found', 60_000);
    for (const look of LOOKS) {
        const { page, faults, context } = await enter(look);
        for (const [hash, question] of Object.entries({ ...VIEWS, ...MORE })) {
            await go(page, hash);
            await page.locator('h1', { hasText: question }).waitFor();
            await page.waitForTimeout(500);
            assert.equal(
                await page.locator('main .problem').count(),
                0,
                `${hash}: ${await page.locator('main .problem').allInnerTexts()}`,
            );
            const wide = await tooWide(page);
            assert.ok(wide <= 0, `${hash} is ${wide} px too wide at ${look.width ?? 1280} px`);
            assert.deepEqual(await axe(page), [], `${hash}, ${JSON.stringify(look)}`);
            await screenshot(page, `${hash.replace(/\W+/g, '-')}-${look.theme}-${look.width ?? 1280}`);
        }
        assert.deepEqual(faults, []);
        await context.close();
    }
});

test('the view Fleet shows the history of each gateway, and asks a gateway once in five seconds', async () => {
    const opened = await browser.open({ width: 390, height: 800 });
    const { page, faults, context } = opened;
    const asked = [];
    const gateways = ['one', 'two', 'three', 'four'].map((name, at) => ({
        name,
        is_down: false,
        is_current: name !== 'four',
        heard_ms: name === 'four' ? 60_000 : 100,
        clock_ms: at ? 40 * at : null,
    }));
    const state = {
        name: 'one',
        is_connected: true,
        limit: 8,
        share: 2,
        slots: 2,
        warnings: [],
        gateways,
        rejected: {},
    };
    await context.route('**/v1/status', async route => {
        const answer = await route.fetch();
        await route.fulfill({ response: answer, json: { ...(await answer.json()), fleet: 'one' } });
    });
    await context.route('**/v1/fleet', route =>
        route.fulfill({ json: { sent: 1, received: 1, problem: null, allocator: 'one', ...state } }),
    );
    await context.route('**/v1/fleet/*/history', route => {
        const name = new URL(route.request().url()).pathname.split('/')[3];
        asked.push({ name, at: Date.now() });
        if (name === 'three')
            return route.fulfill({
                status: 503,
                contentType: 'application/problem+json',
                json: { status: 503, code: 'unavailable', detail: 'the gateway does not answer' },
            });
        const end = Math.floor(Date.now() / 10_000);
        const steps = Array.from({ length: 90 }, (_, at) => at);
        const scale = name === 'one' ? 1 : 2;
        return route.fulfill({
            json: {
                step_s: 10,
                at_ms: steps.map(at => (end - 89 + at) * 10_000),
                answered_per_s: steps.map(at => scale * (at === 89 ? 100 : 60 + 30 * Math.sin(at / 9))),
                refused_per_s: steps.map(at => (at > 60 ? scale * 7 : 0)),
                waiting: steps.map(at => scale * (at % 5)),
            },
        });
    });
    await page.goto(gateway.link('--by', 'ana'));
    await page.locator('.state').waitFor();
    await go(page, 'fleet');
    const panel = page.locator('.panel', { hasText: 'Last 15 minutes' });
    await panel.locator('.tile', { hasText: 'Answered' }).getByText('300').first().waitFor();
    await panel.locator('.tile', { hasText: 'Gateways' }).getByText('2 / 4').waitFor();
    const silent = await panel.locator('tbody tr', { hasText: 'no answer' }).locator('th .hostile').allInnerTexts();
    assert.deepEqual(silent, ['four', 'three']);
    assert.ok((await tooWide(page)) <= 0);
    assert.deepEqual(await axe(page), []);
    await screenshot(page, 'fleet-history-light-390');
    await page.setViewportSize({ width: 1280, height: 860 });
    await screenshot(page, 'fleet-history-light-1280');
    await until(() => asked.filter(one => one.name === 'two').length >= 2, 'the second question');
    await go(page, 'now');
    const before = asked.length;
    await go(page, 'fleet');
    await page.waitForTimeout(300);
    assert.equal(asked.length, before, 'opening the view again asks no gateway again');
    await go(page, 'now');
    assert.deepEqual([...new Set(asked.map(one => one.name))].sort(), ['one', 'three', 'two']);
    for (const name of ['one', 'two', 'three']) {
        const times = asked.filter(one => one.name === name).map(one => one.at);
        times.slice(1).forEach((at, place) => assert.ok(at - times[place] >= 4900, `${name}: ${times}`));
    }
    assert.deepEqual(faults, []);
    await context.close();
});

let looked;
async function enterOnce() {
    looked ??= await enter();
    await go(looked.page, 'elephants');
    return looked.page.locator('main table tbody tr.leads').count();
}

test("strangers' text is text in every view", async () => {
    const { page, faults, context } = await enter();
    for (const hash of ['why', 'why?class=detail', 'elephants?tab=routes', 'classes/detail', 'now']) {
        await go(page, hash);
        await page.waitForTimeout(400);
        assert.equal(await page.locator('main img, main script').count(), 0, hash);
    }
    await beHostile();
    await go(page, 'why?follow=no');
    const list = page.locator('main table');
    await list.getByText('<img+src=x+onerror=alert(1)>').first().waitFor();
    await list.getByText('</script><script>alert(2)</script>').first().waitFor();
    await list.locator('tr', { hasText: 'onerror=alert(1)' }).first().locator('a').click();
    await page.locator('.life-of').waitFor();
    await screenshot(page, 'why-one-light-1280');
    assert.deepEqual(await axe(page), []);
    await page.getByRole('button', { name: 'JSON' }).click();
    await page.locator('pre.json', { hasText: 'onerror=alert(1)' }).waitFor();
    await page.keyboard.press('Escape');
    await page.locator('dialog[open]').waitFor({ state: 'detached' });
    assert.deepEqual(faults, []);
    await context.close();
});

test('the login page says what to run, and keeps the page that the operator wanted', async () => {
    const { page, context } = await browser.open();
    await page.goto(`${gateway.admin}/#/classes/search?range=24h`);
    await page.locator('.login', { hasText: 'bywash console' }).waitFor();
    assert.deepEqual(await axe(page), []);
    await screenshot(page, 'login-light-1280');
    await page.getByRole('textbox').fill('nonsense');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByText('This is not a token').waitFor();
    const token = gateway.link('--by', 'ana').split('/login/')[1];
    await page
        .getByRole('textbox')
        .fill(token.replace(/.$/, last => (last === 'A' ? 'B' : 'A')).replace(/\.d\./, '.r.'));
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.locator('.login form .problem', { hasText: 'Not allowed' }).waitFor();
    await page.getByRole('textbox').fill(gateway.link('--by', 'ana'));
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.locator('h1', { hasText: 'Class search' }).waitFor();
    assert.match(page.url(), /#\/classes\/search\?range=24h$/);
    await context.close();
});

test('a link changes who looks only if its token is good and the operator agrees', async () => {
    const { page, faults, context } = await browser.open();
    await page.goto(gateway.link('--by', 'ana'));
    await page.locator('.operator', { hasText: 'ana' }).waitFor();
    // The address bar does not keep the token.
    assert.doesNotMatch(page.url(), /login/);
    const leads = hash => page.evaluate(hash => void (location.hash = hash), hash);
    // A forged token: any page can make such a link.
    await leads('#/login/v1.9999999999999.d.YQ.x');
    await page.getByText('The link had no effect').waitFor();
    assert.match(await page.locator('.operator').innerText(), /ana/);
    assert.deepEqual(await axe(page), []);
    await page.getByRole('button', { name: 'Close' }).click();

    const bob = gateway.link('--by', 'bob').split('/#')[1];
    await leads(`#${bob}`);
    const asks = page.locator('dialog[open]', { hasText: 'Continue as another operator?' });
    await asks.waitFor();
    assert.deepEqual(await axe(page), []);
    await screenshot(page, 'another-operator-light-1280');
    await page.getByRole('button', { name: 'Stay' }).click();
    await asks.waitFor({ state: 'detached' });
    assert.match(await page.locator('.operator').innerText(), /ana/);
    assert.doesNotMatch(page.url(), /login/);

    await leads(`#${bob}`);
    await page.getByRole('button', { name: 'Continue as bob' }).click();
    await page.locator('.operator', { hasText: 'bob' }).waitFor();
    // The token survives a reload of its tab, and no other tab has it.
    await page.reload();
    await page.locator('.operator', { hasText: 'bob' }).waitFor();
    const other = await context.newPage();
    await other.goto(gateway.admin);
    await other.locator('.login').waitFor();
    assert.deepEqual(faults, []);
    await context.close();
});

test('a token that was valid once is reported as expired', async () => {
    const { page, context } = aging;
    await until(
        async () => (await page.locator('.login h1').innerText()) === 'Your token has expired',
        'the page says so',
        90_000,
    );
    await context.close();
});

test('a read-only operator sees everything, and why they cannot decide', async () => {
    const { page, context } = await enter({}, '--read-only');
    await go(page, 'policy');
    const button = page.getByRole('button', { name: 'Bypass…' });
    await button.waitFor();
    assert.equal(await button.isDisabled(), true);
    await page.getByText('Your token is read-only').first().waitFor();
    await context.close();
});

test('the keyboard leads to every view and shows its keys', async () => {
    const { page, context } = await enter();
    for (const [letter, question] of [
        ['c', VIEWS.classes],
        ['e', VIEWS.elephants],
        ['p', VIEWS.policy],
        ['n', VIEWS.now],
    ]) {
        await page.keyboard.press('g');
        await page.keyboard.press(letter);
        await page.locator('h1', { hasText: question }).waitFor();
    }
    await page.keyboard.press('?');
    await page.locator('dialog', { hasText: 'through the rows' }).waitFor();
    assert.deepEqual(await axe(page), []);
    await page.keyboard.press('Escape');
    await go(page, 'classes');
    await page.keyboard.press('/');
    await page.keyboard.type('sea');
    await page.keyboard.press('Tab');
    await until(async () => (await page.locator('main tbody tr').count()) === 1, 'one class is left');
    assert.match(page.url(), /filter=sea/);
    await page.locator('main tbody a').first().focus();
    await page.keyboard.press('Enter');
    await page.locator('h1', { hasText: 'Class search' }).waitFor();
    await context.close();
});

test('slots are a resource too, and a class that can be stopped has a threshold', async () => {
    const { page, faults, context } = await enter();
    await go(page, 'elephants');
    await page.locator('.resources a', { hasText: 'slots' }).click();
    await page.locator('.panel h2', { hasText: 'Use of slots' }).waitFor();
    await go(page, 'saved');
    await page.getByText('Class search: how long a request may run').waitFor();
    await page.locator('.legend li', { hasText: 'may run' }).getByText('30\u2009s').waitFor();
    assert.deepEqual(faults, []);
    await context.close();
});

test('what is unknown is said, not drawn', async () => {
    const { page, context } = await enter();
    await go(page, 'classes/nobody');
    await page.getByText('The configuration has no class with this name').waitFor();
    await go(page, 'why/0000000000000000');
    await page.locator('main .problem').waitFor();
    await go(page, 'elephants/4711');
    await page.locator('main .problem').waitFor();
    await context.close();
});

test('a result of this computer is opened, alone and next to one of the gateway', async () => {
    const { page, faults, context } = await enter();
    const folder = resolve(import.meta.dirname, '../../../lab/expected');
    await go(page, 'lab');
    const open = page.locator('input[type=file]');
    await open.setInputFiles(join(folder, 'paper-1-table.json'));
    await page.locator('.panel h2', { hasText: 'paper-1-table.json' }).waitFor();
    await go(page, 'lab/flash-crowd.json');
    await page.locator('.panel h2', { hasText: 'Comparison' }).waitFor();
    await page.locator('.panel h2', { hasText: 'flash-crowd.json' }).waitFor();
    assert.deepEqual(await axe(page), []);
    await open.setInputFiles({ name: '<img>.json', mimeType: 'application/json', buffer: Buffer.from('nonsense') });
    await page.getByText('The file is not valid JSON.').waitFor();
    assert.equal(await page.locator('main img').count(), 0);
    assert.deepEqual(faults, []);
    await context.close();
});

test('the page that is in the binary works, with nothing put in its place', async test_ => {
    const built = await (await fetch(`${gateway.admin}/console.js`)).text();
    if (built !== readFileSync(resolve(import.meta.dirname, '../../dist/console.js'), 'utf8'))
        return test_.skip('the binary was built with another console than console/dist');
    const { page, faults, context } = await enter({ isBuilt: true });
    for (const [hash, question] of Object.entries(VIEWS)) {
        await go(page, hash);
        await page.locator('h1', { hasText: question }).waitFor();
    }
    assert.deepEqual(faults, []);
    await context.close();
});

test('64 classes are shown in every view', async () => {
    const many = await startGateway({ classes: 59 });
    for (const look of [{}, { width: 360, height: 740 }]) {
        const { page, faults, context } = await browser.open(look);
        await page.goto(many.link('--by', 'ana'));
        await page.locator('.state').waitFor();
        for (const [hash, question] of Object.entries(VIEWS)) {
            await go(page, hash);
            await page.locator('h1', { hasText: question }).waitFor();
            await page.waitForTimeout(300);
            const wide = await tooWide(page);
            assert.ok(wide <= 0, `${hash} is ${wide} px too wide`);
            if (hash === 'classes' || hash === 'policy')
                assert.ok((await page.locator('main table').first().locator('tbody tr').count()) >= 64, hash);
        }
        assert.deepEqual(faults, []);
        await context.close();
    }
    await many.close();
});

test('a clock that was set back is said, and what came before is not drawn', async () => {
    const { page, faults, context } = await browser.open();
    const token = gateway.link('--by', 'ana').split('/login/')[1];
    const columns = await (
        await fetch(`${gateway.admin}/v1/history`, { headers: { Authorization: `Bearer ${token}` } })
    ).json();
    const middle = Math.floor(columns.number.length / 2);
    columns.at_ms = columns.at_ms.map((ms, at) => (at < middle ? ms + 3_600_000 : ms));
    const body = `id: 0-${columns.number.at(-1)}\nevent: anew\ndata: ${JSON.stringify(columns)}\n\n`;
    await context.route('**/v1/events', route => route.fulfill({ contentType: 'text/event-stream', body }));
    await page.goto(`${gateway.admin}/#/login/${token}`);
    await page.getByText('clock was set back by').waitFor();
    assert.deepEqual(faults, []);
    await context.close();
});

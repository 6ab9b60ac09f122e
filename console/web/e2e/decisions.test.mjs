// Tests of decisions in a real Chromium with a real gateway. They cover a throttle with its preview
// and its effect, by mouse and by keyboard, and two operators at once. They also cover overrides,
// the bypass, and a gateway that stops and starts again.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { axe, screenshot, startBrowser } from './browser.mjs';
import { startGateway, until } from './gateway.mjs';
import { startVisitors } from './visitors.mjs';

let gateway, browser, stopVisitors, ask;

before(async () => {
    gateway = await startGateway();
    browser = await startBrowser();
    stopVisitors = startVisitors(gateway, { '/search?q=tv': 30, '/item/7': 8, '/': 4, '/checkout/pay': 1 });
    ask = asker(gateway);
    await until(
        async () => (await ask('/v1/elephants')).elephants.some(one => one.pattern.startsWith('/search')),
        'the search is found',
        120_000,
    );
});
// Undoes the decisions of a test that has failed, so that they do not disturb the next one.
afterEach(async () => {
    for (const { number, state } of (await ask('/v1/elephants')).elephants)
        if (state !== 'proposed') await ask(`/v1/elephants/${number}/undo`, { why: 'the test is over' });
});
after(async () => {
    stopVisitors?.();
    await browser?.close();
    await gateway?.close();
});

/**
 * Returns a function that sends a request to the API as the operator `test`. If a body is given,
 * the request is a POST.
 */
function asker({ admin, link }) {
    const Authorization = `Bearer ${link('--by', 'test').split('/login/')[1]}`;
    return async (path, body) => {
        const headers = { Authorization, 'Bywash-Admin': '1', 'Content-Type': 'application/json' };
        const post = body && { method: 'POST', body: JSON.stringify(body) };
        const answer = await fetch(admin + path, { headers, ...post });
        const text = await answer.text();
        assert.ok(answer.ok, `${path}: ${text}`);
        return JSON.parse(text);
    };
}

async function enter(name, hash) {
    const opened = await browser.open();
    await opened.page.goto(gateway.link('--by', name));
    await opened.page.locator('.state').waitFor();
    if (hash) await opened.page.evaluate(hash => (location.hash = hash), `#/${hash}`);
    return opened;
}

/** Opens the page of the elephant `/search` through its link on the first page. */
async function toElephant(page) {
    await page.locator('.attention li', { hasText: '/search' }).getByRole('link', { name: 'Decide' }).click();
    await page.locator('h1', { hasText: 'Elephant' }).waitFor();
}

const stateIs = (page, words) => page.locator('.subject .tag', { hasText: words }).waitFor();

async function undo(page) {
    await page.getByRole('button', { name: 'Undo…' }).click();
    await page.locator('dialog').getByRole('button', { name: 'The peak is over' }).click();
    await page.locator('dialog').getByRole('button', { name: 'Undo', exact: true }).click();
    await page.getByRole('button', { name: 'Approve…' }).waitFor();
}

/** Returns the fraction of the requests in all windows of `lots` together that was refused. */
function refusedOf(lots) {
    const [refused, answered] = ['refused', 'answered'].map(name => lots.reduce((sum, lot) => sum + lot[name], 0));
    return refused / (refused + answered);
}

test('a newcomer approves a throttle and sees its effect', async context => {
    const begun = Date.now();
    const { page, faults, context: visitor } = await enter('ana');
    await page.locator('.bar a', { hasText: 'to decide' }).waitFor();
    await page.locator('nav a', { hasText: 'Elephants' }).getByText('to decide').waitFor({ state: 'attached' });
    await toElephant(page);
    const predicted = page.locator('.prediction');
    const before = await predicted.innerText();
    await page.getByLabel(/^Start/).fill('5');
    await until(async () => (await predicted.innerText()) !== before, 'the preview follows what is edited');
    await page.getByRole('button', { name: 'Approve…' }).click();
    const dialog = page.locator('dialog');
    await dialog.getByText('up to 5.0\u2009/s start').waitFor();
    await screenshot(page, 'approve-light-1280');
    assert.deepEqual(await axe(page), []);
    await dialog.getByRole('button', { name: /Orders first/ }).click();
    await dialog.getByRole('button', { name: 'Approve', exact: true }).click();
    await stateIs(page, 'held back');
    await page.locator('.effect table').waitFor();
    context.diagnostic(`from the link to the effect: ${Date.now() - begun} ms, by a machine`);
    await page.locator('.verdict.settling').waitFor();
    const cell = words => page.locator('.effect tbody tr', { hasText: words }).locator('td').nth(1);
    await until(
        async () => Number.parseFloat(await cell('These: not answered').innerText()) > 0,
        'the rule refuses',
        30_000,
    );
    await page.waitForTimeout(4000);
    await screenshot(page, 'effect-light-1280');
    assert.deepEqual(await axe(page), []);
    await page.getByText('held back by ana').first().waitFor();
    const measured = page.locator('.effect tbody tr', { hasText: 'All others: p50' });
    await until(
        async () => (await measured.locator('td').allInnerTexts()).slice(0, 2).every(text => /\d/.test(text)),
        'others are measured before and under the rule',
        30_000,
    );
    await page.getByRole('link', { name: 'the last requests under the rule' }).click();
    await until(async () => (await page.locator('main tbody tr.leads').count()) > 0, 'requests under the rule');
    const under = await page.locator('main tbody tr.leads').allInnerTexts();
    assert.ok(
        under.every(text => text.includes('/search')),
        'and no others',
    );
    await page.goBack();
    await page
        .locator('.verdict:is(.better, .same, .worse)', { hasText: 'of all other requests' })
        .waitFor({ timeout: 40_000 });
    const number = /elephants\/(\d+)/.exec(page.url())[1];
    const answers = await ask(`/v1/elephants/${number}/answers`);
    assert.ok(answers.elephants.length > 0 && answers.elephants.length === answers.at_ms.length);
    // Some of the others may be refused too: on an overloaded computer, the gateway sheds requests
    // with or without a rule.
    const [these, others] = [answers.elephants, answers.ants].map(refusedOf);
    assert.ok(these > 0 && others < these, `refused: ${these} of these and ${others} of all others`);
    assert.ok(
        answers.ants.some(lot => lot.answered > 5),
        'others are answered',
    );
    await undo(page);
    assert.deepEqual(faults, []);
    await visitor.close();
});

test('a route that nobody found to be much is throttled from the list of all routes', async () => {
    const { page, faults, context } = await enter('ana', 'elephants?tab=routes&filter=item');
    const row = page.locator('main tbody tr', { hasText: '/item' });
    await row.getByRole('button', { name: 'Throttle…' }).click();
    const dialog = page.locator('dialog');
    await dialog.getByRole('button', { name: 'It overloads the site' }).click();
    await dialog.getByRole('button', { name: 'Show what a rule would do' }).click();
    await page.locator('h1', { hasText: 'Elephant' }).waitFor();
    await page.locator('.subject', { hasText: '/item' }).waitFor();
    await page.locator('.sentences', { hasText: '127.0.0.1 causes' }).waitFor();
    await page.getByLabel(/^Start/).fill('two');
    await page.getByText('Not a number: Start rate.').waitFor();
    assert.ok(await page.getByRole('button', { name: 'Approve…' }).isDisabled());
    await page.getByLabel(/^Start/).fill('2,5');
    await page.getByRole('button', { name: 'Approve…' }).click();
    await dialog.getByRole('button', { name: 'Agreed with its owners' }).click();
    await dialog.getByRole('button', { name: 'Approve', exact: true }).click();
    await stateIs(page, 'held back');
    await undo(page);
    await page.evaluate(() => (location.hash = '#/elephants?tab=routes&filter=item'));
    await row.locator('a', { hasText: 'elephant' }).waitFor();
    await page.evaluate(() => (location.hash = '#/elephants?tab=routes&filter=checkout'));
    const orders = page.locator('main tbody tr', { hasText: '/checkout' }).filter({ hasText: 'some' });
    await orders.waitFor();
    assert.equal(await orders.getByRole('button').count(), 0, 'transactions are not offered');
    assert.deepEqual(faults, []);
    await context.close();
});

test('a trial says that it measures', async () => {
    const { page, context } = await enter('ana');
    await toElephant(page);
    await page.getByRole('button', { name: 'Try for 60 s…' }).click();
    await page.locator('dialog').getByRole('textbox', { name: 'Reason' }).fill('is it this one?');
    await page.locator('dialog').getByRole('button', { name: 'Try for 60 s' }).click();
    await stateIs(page, 'tried');
    await page.getByText('The trial is being measured.').waitFor();
    await screenshot(page, 'trial-light-1280');
    await undo(page);
    await context.close();
});

test('a trial that is over says how it was before and meanwhile', async () => {
    const { page, faults, context } = await enter('ana');
    // The console does not offer ten seconds, because a trial that short would measure little.
    await page.route('**/try', route =>
        route.continue({ postData: JSON.stringify({ ...route.request().postDataJSON(), for: '10s' }) }),
    );
    await toElephant(page);
    await page.getByRole('button', { name: 'Try for 60 s…' }).click();
    await page.locator('dialog').getByRole('button', { name: 'To find the cause' }).click();
    await page.locator('dialog').getByRole('button', { name: 'Try for 60 s' }).click();
    await stateIs(page, 'tried');
    await page.getByText('The trial is being measured.').waitFor();
    await page.getByRole('button', { name: 'Reject…' }).waitFor({ timeout: 40_000 });
    const measured = page.locator('.panel', { hasText: 'The last trial' }).locator('tbody tr');
    await measured.first().waitFor();
    for (const cells of await measured.evaluateAll(rows => rows.map(row => [...row.cells].map(cell => cell.innerText))))
        for (const at of [1, 2]) assert.match(cells[at], /\d/, cells.join(' | '));
    await screenshot(page, 'trial-over-light-1280');
    assert.deepEqual(await axe(page), []);
    assert.deepEqual(faults, []);
    await context.close();
});

test('a rejection says who and why, and its end makes it a proposal again', async () => {
    const { page, faults, context } = await enter('ana');
    await toElephant(page);
    await page.getByRole('button', { name: 'Reject…' }).click();
    await page.locator('dialog').getByRole('button', { name: 'This load is intended' }).click();
    await page.locator('dialog').getByRole('button', { name: 'Reject', exact: true }).click();
    await stateIs(page, 'rejected');
    await page.locator('.subject', { hasText: 'rejected by ana until' }).waitFor();
    await page.locator('.subject', { hasText: 'This load is intended' }).waitFor();
    await page.getByRole('button', { name: 'Undo the rejection…' }).click();
    await page.locator('dialog').getByRole('button', { name: 'It was the wrong one' }).click();
    await page.locator('dialog').getByRole('button', { name: 'Undo', exact: true }).click();
    await page.getByRole('button', { name: 'Reject…' }).waitFor();
    assert.deepEqual(faults, []);
    await context.close();
});

test('a hostile operator is shown as text, wherever her name and her whys come back', async () => {
    const [name, why] = [
        'eve \u202egpj<img src=x onerror=alert(5)>"\'',
        '\u202efdp </script><script>alert(6)</script> "&amp;\'',
    ];
    const shown = text => text.replace('\u202e', '\\u202e');
    const { page, faults, context } = await enter(name);
    await page.locator('.operator', { hasText: shown(name) }).waitFor();
    await toElephant(page);
    await page.getByRole('button', { name: 'Reject…' }).click();
    const dialog = page.locator('dialog');
    const reject = dialog.getByRole('button', { name: 'Reject', exact: true });
    await dialog.getByRole('textbox', { name: 'Reason' }).fill('red: \u001b[31m');
    await reject.click();
    await dialog.locator('.problem').waitFor();
    await dialog.getByRole('textbox', { name: 'Reason' }).fill(why);
    await reject.click();
    await stateIs(page, 'rejected');
    const number = /elephants\/(\d+)/.exec(page.url())[1];
    for (const hash of [`elephants/${number}`, 'elephants', 'now', 'policy', 'classes/search']) {
        await page.evaluate(hash => (location.hash = hash), `#/${hash}`);
        await page.waitForTimeout(700);
        const said = await page.evaluate(() =>
            [...document.querySelectorAll('*')].flatMap(one => [
                one.innerText ?? '',
                ...[...one.attributes].map(attribute => attribute.value),
            ]),
        );
        assert.equal(said.filter(text => /[\u202e\u001b]/.test(text)).length, 0, hash);
        if (['elephants/', 'now', 'policy'].some(begin => hash.startsWith(begin))) {
            const text = await page.locator('main').innerText();
            for (const part of [shown(name), shown(why)]) assert.ok(text.includes(part), `${hash} says ${part}`);
        }
        assert.equal(await page.locator('main img, main script').count(), 0, hash);
    }
    await page.getByRole('button', { name: 'JSON' }).click();
    await page.locator('pre.json').waitFor();
    assert.doesNotMatch(await page.locator('dialog').innerText(), /[\u202e\u001b]/);
    await page.keyboard.press('Escape');
    await page.evaluate(hash => (location.hash = hash), `#/elephants/${number}`);
    await page.getByRole('button', { name: 'Undo the rejection…' }).click();
    await dialog.getByRole('button', { name: 'It was the wrong one' }).click();
    await dialog.getByRole('button', { name: 'Undo', exact: true }).click();
    await page.getByRole('button', { name: 'Reject…' }).waitFor();
    assert.deepEqual(faults, []);
    await context.close();
});

test('of two operators at once the second is told, and loses nothing', async () => {
    const [ana, ben] = [await enter('ana'), await enter('ben')];
    for (const { page } of [ana, ben]) {
        await toElephant(page);
        await page.getByLabel(/^Max concurrency/).fill('2');
        await page.getByRole('button', { name: 'Approve…' }).click();
        await page.locator('dialog').getByRole('textbox', { name: 'Reason' }).fill('pages first, says who is on call');
    }
    await ana.page.locator('dialog').getByRole('button', { name: 'Approve', exact: true }).click();
    await stateIs(ana.page, 'held back');
    await stateIs(ben.page, 'held back');
    const dialog = ben.page.locator('dialog');
    await dialog.getByRole('button', { name: 'Approve', exact: true }).click();
    await dialog.getByText('Another operator has decided').waitFor();
    await dialog.getByText('held back by ana').waitFor();
    assert.equal(
        await dialog.getByRole('textbox', { name: 'Reason' }).inputValue(),
        'pages first, says who is on call',
    );
    await screenshot(ben.page, 'conflict-light-1280');
    await dialog.getByRole('button', { name: 'Approve anyway' }).click();
    await ana.page.getByText('held back by ben').first().waitFor();
    await undo(ben.page);
    for (const { faults, context } of [ana, ben]) {
        assert.deepEqual(faults, []);
        await context.close();
    }
});

test('a throttle is approved with nothing but the keyboard', async () => {
    const { page, context } = await enter('ana');
    const press = async (...keys) => {
        for (const key of keys) await page.keyboard.press(key);
    };
    const tabTo = async (words, most = 60) => {
        for (let at = 0; at < most; at += 1) {
            await page.keyboard.press('Tab');
            if (await page.evaluate(words => new RegExp(words).test(document.activeElement?.textContent ?? ''), words))
                return;
        }
        throw new Error(`Tab does not lead to ${words}`);
    };
    await press('g', 'e');
    await page.locator('main tbody a', { hasText: '/search' }).first().waitFor();
    await tabTo('^/search');
    await press('Enter');
    await page.locator('h1', { hasText: 'Elephant' }).waitFor();
    await page.getByRole('button', { name: 'Approve…' }).waitFor();
    await tabTo('^Approve…$');
    await press('Enter');
    await page.locator('dialog[open]').waitFor();
    await page.keyboard.type('without a mouse');
    await press('Enter');
    await stateIs(page, 'held back');
    await page.getByText('without a mouse').first().waitFor();
    await undo(page);
    await context.close();
});

test('a class is observed for a while, and treated as the file says again', async () => {
    const { page, faults, context } = await enter('ana', 'policy');
    const row = page.locator('main table').first().locator('tr', { hasText: 'search' });
    await row.getByRole('button', { name: /Change… class search/ }).click();
    const dialog = page.locator('dialog');
    await dialog.getByLabel('Only observe').check();
    await dialog.getByRole('button', { name: 'To look for a fault' }).click();
    await dialog.getByRole('button', { name: 'Observe', exact: true }).click();
    await row.getByText('ana,').waitFor();
    await page.locator('pre', { hasText: 'observe' }).waitFor();
    await page.waitForTimeout(1500);
    await screenshot(page, 'override-light-1280');
    assert.deepEqual(await axe(page), []);
    await row.getByRole('button', { name: /Undo/ }).click();
    await dialog.getByRole('button', { name: 'It was a mistake' }).click();
    await dialog.getByRole('button', { name: 'Undo', exact: true }).click();
    await row.getByText('none').waitFor();
    await page.locator('td', { hasText: 'It was a mistake' }).waitFor();
    assert.deepEqual(faults, []);
    await context.close();
});

test('the bypass is one click and a why away, and ends so', async () => {
    const { page, context } = await enter('ana', 'policy');
    const other = await enter('ben');
    for (const [name, why, word] of [
        ['Bypass', 'To look for a fault', 'BYPASSED'],
        ['End the bypass', 'The fault is found', 'ENFORCING'],
    ]) {
        await page.getByRole('button', { name: `${name}…` }).click();
        await page.locator('dialog').getByRole('button', { name: why }).click();
        await page.locator('dialog').getByRole('button', { name, exact: true }).click();
        for (const at of [page, other.page]) await at.locator('.mode', { hasText: word }).waitFor();
    }
    await context.close();
    await other.context.close();
});

test('through a tunnel to a socket no token is needed, and who decides says a name once', async () => {
    const behind = await startGateway({ socket: true });
    const { page, faults, context } = await browser.open();
    await page.goto(`${behind.admin}/#/policy`);
    for (const [name, why] of [
        ['Bypass', 'To look for a fault'],
        ['End the bypass', 'The fault is found'],
    ]) {
        await page.getByRole('button', { name: `${name}…` }).click();
        const who = page.locator('dialog').getByRole('textbox', { name: 'Your name' });
        if (name === 'Bypass') await who.fill('dora');
        assert.equal(await who.inputValue(), 'dora');
        await page.locator('dialog').getByRole('button', { name: why }).click();
        await page.locator('dialog').getByRole('button', { name, exact: true }).click();
        await page.locator('td', { hasText: why }).waitFor();
    }
    assert.equal(await page.locator('td', { hasText: 'dora' }).count(), 2);
    assert.deepEqual(faults, []);
    await context.close();
    await behind.close();
});

/** Records the events that the console receives: the name of each, and the numbers of its rows. */
function keepEvents() {
    const ask = window.fetch;
    window.events = [];
    window.fetch = async (...asked) => {
        const answer = await ask(...asked);
        if (!String(asked[0]).endsWith('/v1/events') || !answer.body) return answer;
        const [ours, theirs] = answer.body.tee();
        (async () => {
            let text = '';
            for await (const piece of ours.pipeThrough(new TextDecoderStream())) {
                const events = (text + piece).split('\n\n');
                text = events.pop();
                for (const event of events) {
                    const [, name] = /^event: (.*)$/m.exec(event) ?? [];
                    const [, data] = /^data: (.*)$/m.exec(event) ?? [];
                    window.events.push({ name, numbers: JSON.parse(data).number ?? [] });
                }
            }
        })().catch(() => undefined);
        return new Response(theirs, answer);
    };
}

/**
 * Checks that the console received each row since the last event `anew` exactly once. Returns the
 * number of events from that event on, including it.
 */
async function assertRowsAreWhole(page) {
    const events = (await page.evaluate(() => window.events)).filter(({ name }) => name !== 'changed');
    const begun = events.findLastIndex(({ name }) => name === 'anew');
    const numbers = events.slice(begun).flatMap(({ numbers }) => numbers);
    assert.ok(numbers.length > 2, `${numbers.length} rows`);
    numbers.forEach((number, at) => assert.equal(number, numbers[0] + at));
    return events.length - begun;
}

test('a connection that breaks loses no row and doubles none', async () => {
    const behind = await startGateway({ socket: true });
    const { page, context } = await browser.open();
    await page.addInitScript(keepEvents);
    await page.goto(`${behind.admin}/#/now`);
    await page.locator('.state').waitFor();
    await page.waitForTimeout(2500);
    behind.cut();
    await page.locator('.connection', { hasText: 'reconnecting since' }).waitFor();
    await page.locator('.connection', { hasText: 'connected' }).waitFor();
    await page.waitForTimeout(2500);
    assert.ok((await assertRowsAreWhole(page)) > 4, 'it went on with what was missed, and not anew');
    await context.close();
    await behind.close();
});

test('a gateway that ends and comes back is said to have, and rows go on', async () => {
    const { page, faults, context } = await enter('ana');
    await page.addInitScript(keepEvents);
    await page.reload();
    await page.locator('.state').waitFor();
    const seen = [];
    page.on(
        'request',
        request => request.url().endsWith('/v1/events') && seen.push(request.headers()['last-event-id']),
    );
    const last = () => page.locator('.chart .when').first().innerText();
    await until(async () => /last/.test(await last()), 'rows come');
    await gateway.stop();
    await page.locator('.connection', { hasText: 'reconnecting since' }).waitFor();
    await page.locator('.stale').waitFor();
    const before = await last();
    await screenshot(page, 'lost-light-1280');
    await gateway.start();
    await page.locator('.connection', { hasText: 'connected' }).waitFor({ timeout: 30_000 });
    await page.locator('.stale').waitFor({ state: 'detached' });
    await until(async () => (await last()) > before, 'rows go on');
    await assertRowsAreWhole(page);
    assert.ok(
        seen.length > 0 && seen.every(id => /^[0-9a-f]+-\d+$/.test(id)),
        `what was said to have been seen: ${seen}`,
    );
    assert.deepEqual(
        faults.filter(fault => !/ERR_CONNECTION_REFUSED/.test(fault)),
        [],
    );
    await context.close();
});

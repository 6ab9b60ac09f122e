import assert from 'node:assert/strict';
import { test } from 'node:test';
import { attention, ordersRefused, whyNothing } from '../src/attention';
import { changeOf, edited, isChange, wrongOf } from '../src/elephants/change';
import { isDisturbed, verdict } from '../src/elephants/effect';
import { predictedText } from '../src/elephants/predicted';
import { evidence, stateText, stateWord } from '../src/elephants/words';
import { difference, pairs } from '../src/lab/compare';
import { readText, type Result } from '../src/lab/result';
import { ordered } from '../src/order';
import { sentences, shadowed } from '../src/policy/shadow';
import { Rows } from '../src/rows';
import { layout } from '../src/sessions/layout';
import type { ClassLearned, Effect, Elephant, Found, Gauge, RuleLimits, ResponseStats, Policy, Rule, Status } from '../src/shapes';
import { sums } from '../src/sums';
import { columns, range } from './columns';

const limits: RuleLimits = { max_concurrency: 2, queue: 128, wait: '10s' };
const found: Found = {
    pattern: '/s',
    twins: [],
    resource: 'db',
    consists_of: 'processors',
    capacity: 2,
    used: 0.9,
    cost: 0.02,
    interval: [0.01, 0.03],
    share: 0.6,
    rate: 50,
    lasts: 0.1,
    provisional: false,
    by_one: 0.1,
    one_client: null,
    transacts: false,
    correlation: null,
};

test('only what differs of a rule is said', () => {
    const now = edited(limits);
    assert.equal(isChange(changeOf(now, limits)), false);
    assert.deepEqual(changeOf({ ...now, max_concurrency: '1', rate: '0,5', wait_s: '2.5' }, limits), {
        max_concurrency: 1,
        rate: 0.5,
        wait_ms: 2500,
    });
    assert.deepEqual(changeOf({ ...now, max_concurrency: '', queue: 'x' }, limits), {});
    assert.equal(wrongOf(now), undefined);
    assert.match(wrongOf({ ...now, rate: '2e' }) ?? '', /Start rate/);
    assert.match(wrongOf({ ...now, max_concurrency: ' ' }) ?? '', /Max concurrency/);
    assert.match(wrongOf({ ...now, wait_s: '-1' }) ?? '', /Max wait/);
    assert.equal(wrongOf({ ...now, rate: ' ', wait_s: '0,5' }), undefined, 'no limit, and half a second');
    assert.equal(
        wrongOf({ ...now, queue: '1,000', rate: '1,000' }),
        'Not a whole number: Max waiting. Ambiguous comma, write decimals with a point: Start rate.',
    );
    assert.equal(
        wrongOf({ ...now, max_concurrency: '2.5', wait_s: 'x' }),
        'Not a number: Max wait. Not a whole number: Max concurrency.',
    );
});

test('what is predicted of a rule counts those who wait for something else as well', () => {
    const of = (lasts: number, effect: Effect): string => predictedText({ ...found, rate: 5, lasts }, effect, limits);
    const free = { elephants_now: 0.1, elephants_most: 1, held_back: 0 };
    assert.match(
        of(0.01, free),
        /recently used 10\s% of db\. Under the rule, they use 10\s% at most\. The rule would hold hardly any back/,
    );
    assert.match(of(2, free), /On average, they would take 100\s% of what the rule allows, so some would wait/);
    assert.match(of(0.01, { ...free, elephants_now: 0.6 }), /would take 60\s% of/);
    assert.match(
        of(0.01, { elephants_now: 0.5, elephants_most: 0.2, held_back: 3 }),
        /20\s% at most.*at least 3\.0\s?\/s of 5\.0/,
    );
});

test('what nobody decides now is told from what nobody has decided', () => {
    const one = { number: 3, pattern: '/s', found, state: 'proposed', revision: 0 } as Elephant;
    assert.match(stateText(one, 0), /no operator has decided yet/);
    assert.match(stateText({ ...one, revision: 7 }, 0), /the last decision has ended/);
    const undone = { ...one, left_alone: '1970-01-01T00:00:10Z' };
    assert.match(stateText(undone, 0), /was undone\. No rule is in force, and until .* without an operator’s approval/);
    assert.doesNotMatch(stateText(undone, 10_000), /approval/);
});

test('another rule is told of since what a rule is compared with begins', () => {
    const at = (seconds: number): string => new Date(seconds * 1000).toISOString();
    const before = { at: at(1000), seconds: 60 } as Gauge;
    const rule = { since: at(1600), before } as Rule;
    const ruled = (number: number, since: number) => ({ number, state: { ruled: { since: at(since) } } }) as Elephant;
    const ended = (seconds: number) =>
        ({ number: 2, state: 'proposed', ended: { at: at(seconds), before: null } }) as Elephant;
    const is = (...others: Elephant[]): boolean => isDisturbed(1, rule, others);
    assert.deepEqual([is(), is(ruled(1, 1600)), is(ruled(2, 930)), is(ended(930))], [false, false, false, false]);
    assert.deepEqual([is(ruled(2, 950)), is(ruled(2, 1200)), is(ended(1700))], [true, true, true]);
});

test('whose an elephant is is said as far as it is known', () => {
    const whose = (by_one: number, at_least?: number): string => {
        const one_client = at_least === undefined ? null : { address: '192.0.2.7', at_least };
        const one = { number: 3, pattern: '/s', state: 'proposed', seen: '1970-01-01T00:00:00Z' } as Elephant;
        const elephants = [{ ...one, found: { ...found, by_one, one_client } }];
        const [need] = attention(undefined, { elephants, resources: [] } as never, undefined, 0, 0);
        return need?.text ?? '';
    };
    assert.match(whose(0.1), /from many clients: none causes more than 10\s% of their service time/);
    assert.match(whose(0.9, 0.85), /One client \(192\.0\.2\.7\) causes most of their service time/);
    assert.match(whose(0.48, 0.45), /One client \(192\.0\.2\.7\) causes up to 48\s% of their service time/);
});

test('evidence says what speaks against it too', () => {
    const said = evidence({ ...found, cost: 0.3, provisional: true, transacts: true }).join(' ');
    for (const words of [/cannot use that much by itself/, /Provisional/, /transactions/]) assert.match(said, words);
    assert.doesNotMatch(evidence(found).join(' '), /Provisional|cannot/);
});

test('what needs attention is listed, broken parts first', () => {
    const elephant = {
        number: 3,
        pattern: '/s',
        found,
        state: 'proposed',
        seen: '1970-01-01T00:00:00Z',
    } as Elephant;
    assert.equal(stateWord(elephant), 'proposed');
    const elephants = {
        resources: [{ name: 'web', seen_s: 0, used: null, trouble: 'gone' }],
        elephants: [
            elephant,
            { ...elephant, number: 4, state: { ruled: {} } },
            { ...elephant, number: 5, asked: true },
            { ...elephant, number: 6, seen: '1969-12-31T23:00:00Z' },
            { ...elephant, number: 7, found: { ...found, transacts: true } },
        ],
    } as unknown as Parameters<typeof attention>[1];
    const status = {
        draining: true,
        access_log_dropped: 0,
        session_cookie: { warning: 'no request had the cookie `sid`' },
        servers: [{ server: 's', state: 'down', failures: 1, connect_failures: 1 }],
    } as unknown as Status;
    const until = (ms: number) => ({ target: 'bypass', by: 'ana', until: new Date(ms).toISOString() });
    const policy = { bypassed: true, overrides: [until(60_000), until(3_600_000)] } as unknown as Policy;
    const list = attention(status, elephants, policy, 0, 3);
    assert.deepEqual(
        list.map(one => one.kind),
        ['bad', 'bad', 'bad', 'bad', 'bad', 'asks', 'asks'],
    );
    assert.match(list[2]!.text, /^The gateway cannot tell sessions apart: no request had the cookie `sid`\.$/);
    assert.match(list[3]!.text, /^3 transactions were shed or expired/);
    assert.match(list[5]!.text, /Elephant 3.*from many clients: none causes more than 10/);
    assert.deepEqual(attention(undefined, undefined, undefined, 0, 0), []);
});

test('what is not known is last, up and down', () => {
    const by = (isDown: boolean) =>
        ordered([{ n: 2 }, { n: undefined }, { n: 1 }, { n: NaN }, { n: 3 }], row => row.n, isDown).map(row => row.n);
    assert.deepEqual(by(false), [1, 2, 3, undefined, NaN]);
    assert.deepEqual(by(true), [3, 2, 1, undefined, NaN]);
});

test('a result that is none is refused in words, and of an old one nothing is made up', () => {
    for (const text of ['', '[]', '{"x":1}', 'null']) assert.equal(typeof readText(text), 'string', text);
    const old = readText(
        '{"scenario":"s","cells":[{"policy":"p","useful_work":0.5,"generated":2,"completed":1,"wasted_work":null},7]}',
    ) as Result;
    assert.equal(old.cells.length, 1);
    const [cell] = old.cells;
    assert.deepEqual([cell?.useful, cell?.completed, cell?.wasted, cell?.p99], [0.5, 0.5, undefined, undefined]);
});

test('two results are held beside each other cell by cell', () => {
    const left = readText('{"cells":[{"policy":"a","rho":1.4,"useful_work":0.5},{"policy":"b","rho":1.4}]}') as Result;
    const right = readText(
        '{"cells":[{"policy":"c","rho":1.4},{"policy":"a","rho":1.4,"useful_work":0.75}]}',
    ) as Result;
    const all = pairs(left, right);
    assert.deepEqual(
        all.map(pair => [pair.left?.policy, pair.right?.policy]),
        [
            ['a', 'a'],
            ['b', undefined],
            [undefined, 'c'],
        ],
    );
    assert.deepEqual(difference(all[0]!.left?.useful, all[0]!.right?.useful), { absolute: 0.25, relative: 0.5 });
    assert.equal(difference(0, 1)?.relative, undefined);
    assert.equal(difference(1, undefined), undefined);
});

test('classes of transactions stand on the right, and every visited class stands somewhere', () => {
    const learned = (name: string, first: number, later: number, next: Record<string, number>): ClassLearned => ({
        name,
        first_visits: first,
        later_visits: later,
        next,
        worth: 1,
        worth_before: null,
        fixed: false,
        index_per_s: null,
        first_index_per_s: null,
        service_ms: null,
        completes: 1,
    });
    const graph = layout(
        [
            learned('pay', 0, 5, {}),
            learned('home', 90, 10, { list: 0.5 }),
            learned('list', 1, 50, { pay: 0.1, home: 0.2 }),
            learned('lonely', 0, 1, {}),
            learned('never', 0, 0, {}),
        ],
        name => name === 'pay',
    );
    const column = (name: string) => graph.nodes.find(node => node.of.name === name)?.column;
    assert.deepEqual(['home', 'list', 'pay', 'lonely', 'never'].map(column), [0, 1, 2, 0, undefined]);
    assert.equal(graph.edges.length, 3);
    assert.deepEqual(layout([], () => false).nodes, []);
});

test('the list says why nothing needs attention although requests are refused', () => {
    assert.match(whyNothing('REFUSING', false), /The gateway refuses those that rank lowest/);
    assert.match(whyNothing('REFUSING', true), /If classes were enforced/);
    assert.equal(whyNothing('CALM', false), 'Nothing needs attention.');
});

test('orders that were refused in the last minute are counted, and no others', () => {
    const rows = new Rows(200);
    rows.append(
        columns(range(0, 100), {
            classes: {
                pay: { shed: range(0, 100).map(at => (at < 50 ? 1 : 0)), expired: range(0, 100).map(() => 1) },
                look: { shed: range(0, 100).map(() => 5) },
            },
        }),
    );
    const classes = [
        { name: 'pay', tier: 'transaction' },
        { name: 'look', tier: 'browsing' },
        { name: 'new', tier: 'transaction' },
    ];
    assert.equal(ordersRefused({ classes } as Status, rows), 70);
    assert.equal(ordersRefused(undefined, rows), 0);
});

test('a verdict waits until what had waited is answered, and says what the others got', () => {
    const lot = (p99: number | null, answered = 10, refused = 0): ResponseStats => ({ answered, refused, p50: p99, p99 });
    const gauge = (ants: ResponseStats, seconds = 60): Gauge => ({ seconds, used: null, elephants: lot(1), ants });
    const of = (before: ResponseStats | undefined, under: ResponseStats, held = 90) => verdict(before && gauge(before), gauge(under), held);
    assert.equal(of(lot(2), lot(9), 29).kind, 'settling');
    assert.match(of(lot(2), lot(9), 10).text, /begins in 20.s/);
    assert.match(of(lot(45), lot(9), 40).text, /begins in 20.s/, 'longer where others waited for long');
    const better = of(lot(2), lot(0.3, 12));
    assert.equal(better.kind, 'better');
    for (const words of [/^The rule helps/, /within 300.ms/, /within 2.s\)/, /12/]) assert.match(better.text, words);
    assert.equal(of(lot(2), lot(2.1)).kind, 'same');
    assert.equal(of(lot(2), lot(3)).kind, 'worse');
    const hurt = verdict(gauge(lot(2)), { ...gauge(lot(2)), elephants: lot(1, 3, 7) }, 90);
    assert.equal(hurt.kind, 'worse');
    assert.match(hurt.text, /helps no other requests.*30.% were answered/);
    const few = { ...gauge(lot(2)), elephants: lot(1, 0, 0.1) };
    assert.equal(verdict(gauge(lot(2)), few, 90).kind, 'same', 'six of these');
    const none = { ...gauge(lot(2)), elephants: lot(null, 0) };
    assert.doesNotMatch(verdict(none, none, 90).text, /Of these/);
    assert.match(verdict(gauge(lot(2)), gauge(lot(1)), 90, true).text, /Another rule has begun or ended/);
    assert.match(of(lot(1, 2, 50), lot(1.3, 50, 2)).text, /but later/);
    assert.equal(of(lot(2), lot(1.5, 8.5, 1.5)).kind, 'worse', 'faster, as some are refused');
    assert.equal(of(lot(1, 2, 50), lot(1.3, 50, 2)).kind, 'better', 'slower, as nearly all are answered');
    assert.equal(of(undefined, lot(1)).kind, 'unknown');
    assert.equal(verdict(gauge(lot(1), 0), gauge(lot(1)), 90).kind, 'unknown', 'nothing was measured');
    assert.equal(verdict(gauge(lot(1)), undefined, 90).kind, 'unknown');
    assert.match(of(lot(2, 0.1), lot(1)).text, /Too few/);
    assert.match(of(lot(2), lot(1, 0.1)).text, /Too few/);
    assert.match(of(lot(null), lot(1)).text, /none was answered/);
    assert.equal(of(lot(0), lot(1)).kind, 'unknown', 'as an earlier version wrote it');
});

test('a limit that is emptied is to be none, and one that was none stays so', () => {
    const limited: RuleLimits = { ...limits, rate: 2, bytes: 9000 };
    const now = edited(limited);
    assert.deepEqual(changeOf({ ...now, rate: ' ', bytes: '' }, limited), { rate: null, bytes: null });
    assert.deepEqual(changeOf({ ...edited(limits), rate: ' ' }, limits), {});
});

test('what would change is a sentence for each class to which something would happen', () => {
    const rows = new Rows(5);
    rows.append(
        columns([0], {
            classes: { a: { shadow_run: [8], shadow_refused: [2] }, b: { shadow_run: [5] }, c: { shadow_run: [5] } },
        }),
    );
    const of = (name: string) => [name, shadowed(sums(rows, rows.class(name), 0))] as const;
    const said = sentences([of('a'), of('b'), of('c')], 'last 15 min').map(text => text.replaceAll('\u2009', ' '));
    assert.equal(said.length, 2);
    assert.match(said[0]!, /of 10 requests .* let 8 run, refused 2 \(20 %\)/);
    assert.match(said[1]!, /^b, c: all 10 requests/);
});

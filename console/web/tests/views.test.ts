import assert from 'node:assert/strict';
import { test } from 'node:test';
import { attention } from '../src/attention';
import { changeOf, edited, isChange } from '../src/elephants/change';
import { compared } from '../src/elephants/effect';
import { evidence, stateWord } from '../src/elephants/words';
import { difference, pairs } from '../src/lab/compare';
import { readText, type Result } from '../src/lab/result';
import { ordered } from '../src/order';
import { sentences, shadowed } from '../src/policy/shadow';
import { Rows } from '../src/rows';
import { layout } from '../src/sessions/layout';
import type { ClassLearned, Elephant, Found, Grants, Policy, Status } from '../src/shapes';
import { sums } from '../src/sums';
import { columns, range } from './columns';

const grants: Grants = { at_once: 2, queue: 128, wait: '10s' };
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
    transacts: false,
    correlation: null,
};

test('only what differs of a rule is said', () => {
    const now = edited(grants);
    assert.equal(isChange(changeOf(now, grants)), false);
    assert.deepEqual(changeOf({ ...now, at_once: '1', rate: '0,5', wait_s: '2.5' }, grants), {
        at_once: 1,
        rate: 0.5,
        wait_ms: 2500,
    });
    assert.deepEqual(changeOf({ ...now, at_once: '', queue: 'x' }, grants), {});
});

test('evidence says what speaks against it too', () => {
    const said = evidence({ ...found, cost: 0.3, provisional: true, transacts: true }).join(' ');
    for (const words of [/cannot use that much by itself/, /Provisional/, /transactions/]) assert.match(said, words);
    assert.doesNotMatch(evidence(found).join(' '), /Provisional|cannot/);
});

test('what needs a person is said, the broken first', () => {
    const elephant = { number: 3, pattern: '/s', found, state: 'proposed' } as Elephant;
    assert.equal(stateWord(elephant), 'proposed');
    const elephants = {
        resources: [{ name: 'web', seen_s: 0, used: null, trouble: 'gone' }],
        elephants: [elephant, { ...elephant, number: 4, state: { ruled: {} } }],
    } as unknown as Parameters<typeof attention>[1];
    const status = {
        draining: true,
        access_log_dropped: 0,
        servers: [{ server: 's', state: 'down', failures: 1, connect_failures: 1 }],
    } as unknown as Status;
    const until = (ms: number) => ({ target: 'bypass', by: 'ana', until: new Date(ms).toISOString() });
    const policy = { bypassed: true, overrides: [until(60_000), until(3_600_000)] } as unknown as Policy;
    const list = attention(status, elephants, policy, 0);
    assert.deepEqual(
        list.map(one => one.kind),
        ['bad', 'bad', 'bad', 'asks', 'asks'],
    );
    assert.match(list[3]!.text, /Elephant 3/);
    assert.deepEqual(attention(undefined, undefined, undefined, 0), []);
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

test('transact classes stand on the right, and every visited class stands somewhere', () => {
    const learned = (name: string, first: number, later: number, next: Record<string, number>): ClassLearned => ({
        name,
        first_visits: first,
        later_visits: later,
        next,
        worth: 1,
        worth_before: null,
        pinned: false,
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

test('before and after are parted at the moment, also where one of them is short', () => {
    const rows = new Rows(200);
    rows.append(
        columns(range(0, 100), {
            classes: {
                a: {
                    served: range(0, 100).map(() => 1),
                    p50_ms: range(0, 100).map(at => (at < 90 ? 80 : 20)),
                    p99_ms: range(0, 100).map(at => (at < 90 ? 90 : 30)),
                },
            },
        }),
    );
    const { before, now } = compared(rows, [rows.class('a')!], 89_500);
    assert.deepEqual([before.seconds, now.seconds], [60, 10]);
    assert.ok(before.p50! > 75 && now.p50! < 25, `${before.p50} ${now.p50}`);
    assert.equal(compared(rows, [], 1e9).now.seconds, 0);
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

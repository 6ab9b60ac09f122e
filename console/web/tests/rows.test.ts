import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Rows } from '../src/rows';
import { columns, range } from './columns';

test('the last rows are kept, and no others, however many come', () => {
    const rows = new Rows(10);
    for (let first = 0; first < 100; first += 7) rows.append(columns(range(first, first + 7)));
    assert.deepEqual([...rows.gauge('number')], range(95, 105));
});

test('a row that is there already does not come twice, as after a lost stream', () => {
    const rows = new Rows(10);
    rows.append(columns(range(0, 5), { classes: { a: { served: [1, 1, 1, 1, 1] } } }));
    assert.equal(rows.append(columns(range(3, 7), { classes: { a: { served: [9, 9, 2, 2] } } })), 2);
    assert.deepEqual([...rows.gauge('number')], range(0, 7));
    assert.deepEqual([...rows.class('a')!.column('served')], [1, 1, 1, 1, 1, 2, 2]);
    assert.deepEqual([...rows.total.column('served')], [1, 1, 1, 1, 1, 2, 2]);
});

test('anew forgets what was before, also a later number', () => {
    const rows = new Rows(10);
    rows.append(columns(range(50, 55), { classes: { gone: {} } }));
    rows.anew(columns(range(0, 2), { classes: { a: {} } }));
    assert.deepEqual([...rows.gauge('number')], [0, 1]);
    assert.deepEqual(rows.classNames(), ['a']);
});

test('a class that comes later had nothing before, one that is silent has nothing now', () => {
    const rows = new Rows(10);
    rows.append(columns([0, 1], { classes: { a: { served: [3, 4], p50_ms: [5, 6] } } }));
    rows.append(columns([2], { classes: { b: { served: [7] } } }));
    assert.deepEqual([...rows.class('b')!.column('served')], [0, 0, 7]);
    assert.deepEqual([...rows.class('a')!.column('served')], [3, 4, 0]);
    assert.deepEqual([...rows.class('a')!.column('p50_ms')], [5, 6, NaN]);
    assert.deepEqual([...rows.total.column('served')], [3, 4, 7]);
});

test('a class that had a place before, and comes again after anew, has none of its old numbers', () => {
    const rows = new Rows(4);
    rows.append(columns(range(0, 6), { classes: { a: { served: [9, 9, 9, 9, 9, 9] } } }));
    rows.anew(columns(range(0, 2)));
    rows.append(columns([2], { classes: { a: { served: [1] } } }));
    assert.deepEqual([...rows.class('a')!.column('served')], [0, 0, 1]);
});

test('a window begins where its seconds have passed, however long rows lasted', () => {
    const rows = new Rows(10);
    rows.append(columns(range(0, 6), { lasted_ms: [1000, 1000, 3000, 1001, 999, 1000] }));
    assert.equal(rows.since(3), 3);
    assert.equal(rows.since(4), 2);
    assert.equal(rows.since(900), 0);
});

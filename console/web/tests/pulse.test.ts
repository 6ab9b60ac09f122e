import assert from 'node:assert/strict';
import { test } from 'node:test';
import { axis } from '../src/axis';
import { pulse } from '../src/pulse';
import { Rows } from '../src/rows';
import { columns, range } from './columns';

const of = (given: Parameters<typeof columns>[1], length = 30) => {
    const rows = new Rows(60);
    rows.append(columns(range(0, length), given));
    return pulse(rows);
};
const rows30 = (at: (row: number) => number): number[] => range(0, 30).map(at);

test('each word is said where it is true, and the worst of them', () => {
    assert.equal(pulse(new Rows(5)), undefined);
    assert.equal(of({})?.word, 'CALM');
    assert.equal(of({ running: rows30(() => 8) })?.word, 'BUSY');
    assert.equal(of({ waiting: rows30(row => row % 2) })?.word, 'QUEUEING');
    assert.equal(
        of({ waiting: rows30(() => 1), classes: { a: { shed: rows30(row => Number(row === 25)) } } })?.word,
        'REFUSING',
    );
    assert.equal(of({ classes: { a: { shadow_refused: rows30(row => Number(row === 25)) } } })?.isShadow, true);
});

test('it says for how long, and when that is longer than is known', () => {
    const begun = of({ classes: { a: { expired: rows30(row => Number(row >= 20)) } } });
    assert.deepEqual(begun, { word: 'REFUSING', ms: 10_000, isLonger: false, isShadow: false });
    assert.deepEqual(of({}), { word: 'CALM', ms: 30_000, isLonger: true, isShadow: false });
    assert.equal(of({ classes: { a: { shed: rows30(row => Number(row === 10)) } } })?.ms, 10_000);
});

test('the time axis begins after the last jump backwards', () => {
    assert.deepEqual(axis([1000, 2000, 3000]), { from: 0, jump: undefined });
    assert.deepEqual(axis([5000, 1000, 2000, 500, 1500]), { from: 3, jump: { at: 500, ms: 1500 } });
    assert.deepEqual(axis([1000, 1000]).from, 1);
    assert.deepEqual(axis([1000, 9_999_000, 10_000_000]).from, 0);
});

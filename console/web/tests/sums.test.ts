import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buckets } from '../src/buckets';
import { Rows } from '../src/rows';
import { savedBy, savedByAll } from '../src/saved/estimate';
import type { WindowSums } from '../src/shapes';
import { classSums, each, realLength, shareOf, sums, usefulShare } from '../src/sums';
import { columns, range } from './columns';

const rows = new Rows(10);
rows.append(
    columns(range(0, 4), {
        mean_service_us: [0, 0, 50_000, 100_000],
        classes: {
            a: {
                served: [9, 9, 3, 1],
                shed: [9, 0, 2, 0],
                orphaned: [0, 0, 0, 4],
                left_waiting: [0, 0, 0, 2],
                useful_ms: [0, 0, 30, 10],
                wasted_ms: [0, 0, 0, 10],
            },
        },
    }),
);
const a = rows.class('a')!;

test('a window adds up its rows and no others', () => {
    const two = sums(rows, a, 2);
    assert.equal(two.seconds, 2);
    assert.equal(two.ended, 10);
    assert.equal(usefulShare(two), 0.8);
    assert.equal(shareOf(two, ['served']), 0.4);
    assert.equal(each(two, ['shed', 'expired']), 1);
});

test('where nobody worked no share is known', () => {
    const none = sums(rows, undefined, 0);
    assert.equal(none.ended, 0);
    assert.equal(usefulShare(none), undefined);
    assert.equal(shareOf(none, ['served']), undefined);
});

test('a class has the sums that the gateway returns, and zeros if it is not among them', () => {
    const none = { shed: 0, throttled: 0, expired: 0, terminated: 0, orphaned: 0, upstream_error: 0 };
    const outcomes = { served: 30, late: 10, ...none };
    const of = { outcomes, useful_ms: 300, wasted_ms: 100, p50_ms: 12.5, p99_ms: null };
    const window: WindowSums = { length_s: 10, all: of, classes: [{ name: 'a', ...of }] };
    const { seconds, ended, p50, p99 } = classSums(window, 'a');
    assert.deepEqual([seconds, ended, p50, p99], [10, 40, 12.5, undefined]);
    assert.equal(each(classSums(window, 'a'), ['late']), 1);
    assert.equal(shareOf(classSums(window, 'a'), ['served']), 0.75);
    const silent = classSums(window, 'b');
    assert.deepEqual([silent.seconds, silent.ended, silent.p50], [10, 0, undefined]);
    assert.equal(each(silent, ['served']), 0);
});

test('before the gateway has answered no rate and no share of a class is known', () => {
    const unknown = classSums(undefined, 'a');
    assert.equal(each(unknown, ['served']), undefined);
    assert.equal(shareOf(unknown, ['served']), undefined);
});

test('the real length of a window is told if it differs by more than a second', () => {
    const told = (seconds: number | undefined) => realLength('15m', seconds).replaceAll('\u2009', ' ');
    assert.deepEqual([undefined, 899.5, 900.8].map(told), ['', '', '']);
    assert.deepEqual([30, 915].map(told), [' (30 s so far)', ' (15 s longer)']);
});

test('work that was not begun is what never ran, times the mean of its class', () => {
    const { requests, ms } = savedBy(rows, a, 2);
    assert.equal(requests, 4);
    // Ten requests ended. Six of them ran, for 50 ms in total.
    assert.ok(Math.abs(ms - (4 * 50) / 6) < 1e-9, `${ms}`);
    assert.deepEqual(savedByAll(rows, 2), { requests, ms });
    const none = new Rows(5);
    none.append(columns([0], { mean_service_us: [50_000], classes: { b: { shed: [3] } } }));
    assert.deepEqual(savedBy(none, none.class('b')!, 0), { requests: 3, ms: 150 }, 'none ran: as all others');
});

test('points of a course are whole, and counted from the newest', () => {
    assert.deepEqual(
        buckets(5, 2, at => at),
        [3, 7],
    );
    assert.deepEqual(
        buckets(
            4,
            2,
            at => at,
            () => 1,
        ),
        [0.5, 2.5],
    );
    assert.deepEqual(
        buckets(
            2,
            2,
            () => 1,
            () => 0,
        ),
        [undefined],
    );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { courses, isSilent, type Known } from '../src/fleet/course';
import type { FleetGateway } from '../src/shapes';

function known(steps: number[], answered: number[], gateway: Partial<FleetGateway> = {}, problem?: string): Known {
    const history = {
        step_s: 10,
        at_ms: steps.map(step => step * 10_000),
        answered_per_s: answered,
        refused_per_s: answered.map(value => value / 2),
        waiting: answered.map(() => 1),
    };
    return { is_current: true, ...gateway, history, problem } as Known;
}
const lastAnswered = (of: Known[], count: number) => {
    const { end, each, all } = courses(of);
    return [end / 10_000, ...[...each, all].map(course => course[0]!.slice(-count))];
};

test('the steps of the gateways are added by their times, to the last one that all have reached', () => {
    const one = known([100, 101, 102, 103], [1, 2, 3, 4]);
    const two = known([101, 102], [10, 20]);
    assert.deepEqual(lastAnswered([one, two], 3), [102, [1, 2, 3], [undefined, 10, 20], [1, 12, 23]]);
    const { all } = courses([one, two]);
    assert.deepEqual([all[1]!.at(-1), all[2]!.at(-1)], [11.5, 2]);
    assert.equal(all[0]!.length, 90);
    assert.equal(all[0]![0], undefined);
});

test('a gateway that does not answer does not hold up the others, and its line ends', () => {
    const one = known([101, 102, 103], [1, 2, 3]);
    for (const silent of [
        known([100, 101], [5, 6], { is_current: false }),
        known([100, 101], [5, 6], {}, 'the gateway does not answer'),
    ]) {
        assert.equal(isSilent(silent), true);
        assert.deepEqual(lastAnswered([one, silent], 3), [103, [1, 2, 3], [6, undefined, undefined], [7, 2, 3]]);
    }
});

test('a clock that is wrong by minutes is corrected by whole steps, a small difference is not', () => {
    const one = known([101, 102], [1, 2]);
    const ahead = known([131, 132], [10, 20], { clock_ms: 302_000 });
    const behind = known([101, 102], [100, 200], { clock_ms: -4000 });
    assert.deepEqual(lastAnswered([one, ahead, behind], 2).at(-1), [111, 222]);
});

test('gateways without a step have no values', () => {
    const fresh = known([], []);
    const unknown = { is_current: true } as Known;
    for (const of of [[], [fresh], [unknown, fresh]]) {
        const { end, all } = courses(of);
        assert.equal(Number.isFinite(end), false);
        assert.equal(
            all[2]!.every(value => value === undefined),
            true,
        );
    }
    assert.deepEqual(lastAnswered([fresh, unknown, known([7], [3])], 1).at(-1), [3]);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inSlices, readInSteps } from '../src/slices';
import { columns, range } from './columns';

function whole<T>(text: string): T {
    const steps = readInSteps<T>(text);
    for (;;) {
        const { done, value } = steps.next();
        if (done) return value;
    }
}

test('an object that is read in steps is the object', () => {
    const rows = columns(range(0, 9), { classes: { 'a"]},{\\': { served: range(0, 9) }, '\u202e{"x":[': {} } });
    for (const value of [
        {},
        { a: 1, b: 'x,}]"\\', c: null, d: true, e: -1.5e-7, 'f"': { g: [{}, [{}]] } },
        { list: [], of: [{}], more: [{ a: 1 }, { b: [] }, {}], last: [[1], [2]] },
        rows,
    ])
        for (const space of [0, 2]) {
            const text = JSON.stringify(value, null, space);
            assert.deepEqual(whole(text), JSON.parse(text), text);
        }
});

test('a text that is cut off is refused', () => {
    const text = JSON.stringify(columns(range(0, 3), { classes: { a: {} } }));
    for (const length of [1, 10, 40, text.length - 30]) assert.throws(() => whole(text.slice(0, length)), `${length}`);
});

test('each class is a step, and others are let in between slices', async () => {
    let others = 0;
    const timer = setInterval(() => (others += 1));
    const steps = (function* () {
        for (let at = 0; at < 4; at += 1) {
            const until = performance.now() + 10;
            while (performance.now() < until);
            yield;
        }
        return 'done';
    })();
    assert.equal(await inSlices(steps), 'done');
    clearInterval(timer);
    assert.ok(others > 0);
});

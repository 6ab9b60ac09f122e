// Tests when a document is fetched, and which answer is kept. The hook runs in a component that
// draws nothing, so the tests need no DOM.
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { h, options, render } from 'preact';
import { type Document, useDocument } from '../src/document';
import type { WindowSums } from '../src/shapes';

const SECOND = 1000;

// Effects run after the frame, and there are no frames here.
options.requestAnimationFrame = queueMicrotask;
mock.timers.enable({ apis: ['setInterval'] });
Object.assign(globalThis, {
    document: { hidden: false, addEventListener: () => undefined, removeEventListener: () => undefined },
});

/** Waits until all tasks that are due now have run. */
const settled = (): Promise<void> => new Promise(resolve => setImmediate(resolve));

interface Asked {
    resolve: (answer: Response) => void;
    reject: (error: Error) => void;
}

interface Opened {
    /**
     * Answers the fetch with the number `fetch` with a window of the length `length_s`, in seconds.
     */
    answer: (fetch: number, length_s: number) => Promise<void>;
    /** Lets the fetch with the number `fetch` fail. */
    fail: (fetch: number) => Promise<void>;
    fetches: () => number;
    read: () => Document<unknown>;
    close: () => Promise<void>;
}

/** Opens a page with one document that is fetched each second. */
async function opened(window: string): Promise<Opened> {
    const asked: Asked[] = [];
    globalThis.fetch = () => new Promise((resolve, reject) => void asked.push({ resolve, reject }));
    let read: Document<unknown> | undefined;
    const Page = (): null => {
        read = useDocument('/v1/history', { query: { window }, every: SECOND });
        return null;
    };
    const place = {} as Element;
    render(h(Page, {}), place);
    await settled();
    return {
        answer: (fetch, length_s) => {
            const text = async (): Promise<string> => JSON.stringify({ length_s });
            asked[fetch]!.resolve({ ok: true, text } as Response);
            return settled();
        },
        fail: fetch => {
            asked[fetch]!.reject(new TypeError('no connection'));
            return settled();
        },
        fetches: () => asked.length,
        read: () => read!,
        close: () => {
            render(null, place);
            return settled();
        },
    };
}

const length = (page: Opened): number | undefined => (page.read().value as WindowSums | undefined)?.length_s;

test('a document is fetched again only when the last fetch has ended', async () => {
    const page = await opened('10s');
    mock.timers.tick(3 * SECOND);
    assert.equal(page.fetches(), 1);
    await page.answer(0, 1);
    assert.equal(length(page), 1);
    mock.timers.tick(SECOND);
    assert.equal(page.fetches(), 2);
    await page.fail(1);
    assert.equal(page.read().problem?.code, 'unreachable');
    mock.timers.tick(SECOND);
    assert.equal(page.fetches(), 3, 'a fetch that failed has ended too');
    await page.answer(2, 2);
    assert.deepEqual([length(page), page.read().problem], [2, undefined]);
    await page.close();
    mock.timers.tick(SECOND);
    assert.equal(page.fetches(), 3);
});

test('an answer does not replace that of a later fetch', async () => {
    const page = await opened('60s');
    void page.read().reload();
    assert.equal(page.fetches(), 2, 'an operator does not wait for the last fetch');
    await page.answer(1, 2);
    await page.answer(0, 1);
    assert.equal(length(page), 2);
    await page.close();
});

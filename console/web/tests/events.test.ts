import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EventReader } from '../src/events';

const STREAM = 'id: a-1\nevent: anew\ndata: {"x":\ndata: 1}\n\n: a comment\n\nevent: changed\ndata: {}\n\n';
const EVENTS = [
    { name: 'anew', text: '{"x":\n1}', id: 'a-1' },
    { name: 'changed', text: '{}', id: 'a-1' },
];

test('events are the same however the network cuts them', () => {
    for (let size = 1; size <= STREAM.length; size += 1) {
        const reader = new EventReader();
        const pieces = STREAM.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];
        assert.deepEqual(
            pieces.flatMap(piece => reader.read(piece)),
            EVENTS,
            `in pieces of ${size}`,
        );
    }
});

test('lines end as they may', () => {
    for (const end of ['\n', '\r\n', '\r']) {
        const reader = new EventReader();
        const events = [...reader.read(STREAM.replaceAll('\n', end)), ...reader.read('x')];
        assert.deepEqual(events, EVENTS, JSON.stringify(end));
    }
});

test('an event without a name is a message, one without data is none, and the last id stays', () => {
    const reader = new EventReader('b-7');
    assert.deepEqual(reader.read('data:1\n\nevent: seconds\n\n'), [{ name: 'message', text: '1', id: 'b-7' }]);
});

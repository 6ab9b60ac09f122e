import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bytes, clock, count, duration, grouped, lasting, number, percent, perSecond, spanMs } from '../src/format';
import { REASONS, reasonText, words } from '../src/reason';
import { readToken, tokenIn } from '../src/token';
import { href, readPlace } from '../src/view';
import { visible } from '../src/visible';

const plain = (text: string): string => text.replaceAll('\u2009', ' ');

test('numbers have three digits, thin spaces and units', () => {
    assert.deepEqual(
        [0, 0.0123, 1.2345, 12.345, 123.45, 12345, -5].map(one => plain(number(one))),
        ['0', '0.012', '1.23', '12.3', '123', '12 345', '−5'],
    );
    assert.deepEqual(
        [0, 0.0004, 0.5, 3000, 150_000, 1e7].map(one => plain(duration(one))),
        ['0 ms', '0.4 µs', '500 µs', '3 s', '2.5 min', '2.78 h'],
    );
    assert.deepEqual(
        [0, 0.0004, 0.042, 0.5, 0.988, 0.9951, 0.9996, 1].map(one => plain(percent(one))),
        ['0 %', '<0.1 %', '4.2 %', '50 %', '99 %', '99.5 %', '>99.9 %', '100 %'],
    );
    assert.deepEqual(
        [0, 0.001, 0.5, 2, 61.23, 12345].map(one => plain(perSecond(one))),
        ['0 /s', '<0.01 /s', '0.50 /s', '2.0 /s', '61 /s', '12 345 /s'],
    );
    assert.deepEqual(
        [12, 4.1e6].map(one => plain(bytes(one))),
        ['12 B', '4.1 MB'],
    );
    assert.deepEqual(
        [90_000, 150_000, 5_400_000].map(one => plain(lasting(one))),
        ['90 s', '2 min', '90 min'],
    );
    assert.equal(plain(grouped('1234567.25')), '1 234 567.25');
});

test('what is not known is no number', () => {
    for (const of of [number, duration, percent, perSecond, bytes, count])
        for (const value of [null, undefined, NaN, Infinity]) assert.equal(of(value), '–', `${of.name} ${value}`);
    assert.equal(clock(NaN), '–');
});

test('spans are read as the file writes them', () => {
    assert.deepEqual(['250ms', '1.5s', '20s', '5m', '2h', '10', 'x'].map(spanMs), [
        250,
        1500,
        20_000,
        300_000,
        7_200_000,
        undefined,
        undefined,
    ]);
});

test('a link leads where it was made', () => {
    for (const of of ['search', '../x?y#z', '100%', 'a/b']) {
        const place = readPlace(href('classes', of, { range: '24h', none: undefined }));
        assert.deepEqual(place, { view: 'classes', of, query: { range: '24h' } });
    }
    assert.deepEqual(readPlace('#/nonsense'), { view: 'now', of: undefined, query: {} });
    assert.equal(readPlace('#/why/%E0%A4%A').of, '%E0%A4%A');
});

test('a token says who, until when, and whether it decides', () => {
    const name = Buffer.from('Ana Čapková').toString('base64url');
    const token = `v1.1790000000000.d.${name}.c2lnbg`;
    assert.deepEqual(readToken(token), { text: token, name: 'Ana Čapková', expires: 1790000000000, decides: true });
    assert.equal(tokenIn(` http://127.0.0.1:7070/#/login/${token}\n`)?.name, 'Ana Čapková');
    assert.equal(readToken(token.replace('.d.', '.r.'))?.decides, false);
    for (const bad of ['', 'v1', token.replace('v1', 'v2'), token.replace('.d.', '.x.'), 'v1.x.d.YQ.s', 'v1.1.d.%.s'])
        assert.equal(readToken(bad), undefined, bad);
});

test('identifiers are shown as words', () => {
    for (const name of REASONS) assert.doesNotMatch(reasonText(name), /_/, name);
    assert.equal(reasonText('evicted'), 'evicted from the queue');
    assert.equal(reasonText('a_new_reason'), 'a new reason');
    assert.equal(words('in_progress'), 'in progress');
});

test('what would not be seen is seen', () => {
    assert.equal(visible('/y?\u202Egpj.exe \u001b[31m\u200b'), '/y?\\u202egpj.exe \\u001b[31m\\u200b');
    assert.equal(visible('<img src=x> čau 日本 🙂'), '<img src=x> čau 日本 🙂');
});

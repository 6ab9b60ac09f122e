// Tests which tokens are accepted at once, and which the operator must confirm first.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Refused } from '../src/client';
import { entry } from '../src/enter';
import { readToken, type Token } from '../src/token';

const text = (name: string, scope: string): string =>
    `v1.1790000000000.${scope}.${Buffer.from(name).toString('base64url')}.c2lnbg`;
const link = (name: string, scope = 'd'): string => `#/login/${text(name, scope)}`;
const ana = readToken(text('ana', 'd'));
const good = async (): Promise<undefined> => undefined;

test('a token is taken only after the gateway has taken it', async () => {
    const forged = new Refused(401, 'unauthorised', 'forged');
    const seen: Token[] = [];
    for (const here of [undefined, ana]) {
        const found = await entry(link('ana'), here, async of => (seen.push(of), forged));
        assert.deepEqual(found, { refuse: forged });
    }
    assert.deepEqual(seen, [ana, ana]);
    assert.deepEqual(await entry(link('ana'), undefined, good), { take: ana });
});

test('the gateway is not asked about what is no token', async () => {
    const found = await entry('#/login/v1.x', ana, () => assert.fail('it was asked'));
    assert.ok('refuse' in found && found.refuse.code === 'unauthorised');
});

test('a token of another operator, or with other rights, asks first', async () => {
    assert.ok('take' in (await entry(link('ana'), ana, good)));
    assert.ok('ask' in (await entry(link('bob'), ana, good)));
    assert.ok('ask' in (await entry(link('ana', 'r'), ana, good)));
    assert.ok('take' in (await entry(link('bob'), undefined, good)));
});

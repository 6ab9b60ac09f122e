// The contents of a token: `v1.EXPIRES_MS.r|d.BASE64URL(NAME).SIGNATURE`. The console reads them to
// show who the operator is and whether to offer decisions. Only the gateway knows whether a token
// is valid.

export interface Token {
    text: string;
    name: string;
    expires: number;
    decides: boolean;
}

export function readToken(text: string): Token | undefined {
    const [version, expires, scope, name, signature] = text.trim().split('.');
    if (version !== 'v1' || !expires || !name || !signature || (scope !== 'r' && scope !== 'd')) return undefined;
    const read = decoded(name);
    const until = Number(expires);
    if (read === undefined || !Number.isFinite(until)) return undefined;
    return { text: text.trim(), name: read, expires: until, decides: scope === 'd' };
}

/**
 * Finds the token in a pasted text. The text is the link that `bywash console` prints, or the token
 * alone. Returns undefined if there is no token.
 */
export function tokenIn(pasted: string): Token | undefined {
    return readToken(pasted.trim().split('#/login/').pop() ?? '');
}

function decoded(base64url: string): string | undefined {
    try {
        const binary = atob(base64url.replaceAll('-', '+').replaceAll('_', '/'));
        return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(binary, c => c.charCodeAt(0)));
    } catch {
        return undefined;
    }
}

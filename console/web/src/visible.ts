// Text of strangers, for people: what would not be seen, or would turn the order of what is seen around (controls,
// marks of direction, nothing wide), stands there as an escape. Everything else is left alone; that it is text and not
// markup is Preact's work.

const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

export const visible = (text: string): string =>
    text.replace(UNSEEN, one => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** The same of several lines. */
export const visibleLines = (text: string): string => text.split('\n').map(visible).join('\n');

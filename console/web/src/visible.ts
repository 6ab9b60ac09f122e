// Text of strangers, for people. Characters that are invisible or change the direction of the text
// (controls, direction marks, characters without width) are shown as escapes. All others are left
// alone. Preact takes care that it is text and not markup.

const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

export const visible = (text: string): string =>
    text.replace(UNSEEN, one => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** Escapes the same characters in several lines. */
export const visibleLines = (text: string): string => text.split('\n').map(visible).join('\n');

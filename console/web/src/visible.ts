// Makes untrusted text safe to show. Control characters, marks of text direction and zero-width
// characters are replaced by escapes, because they are invisible or reorder the text. All other
// characters stay unchanged. Preact escapes markup.

const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

export const visible = (text: string): string =>
    text.replace(UNSEEN, one => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** Makes a text of several lines safe to show. Line ends stay unchanged. */
export const visibleLines = (text: string): string => text.split('\n').map(visible).join('\n');

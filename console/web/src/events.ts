// A reader of server-sent events, fed with pieces of text as they arrive from the network.
// (EventSource cannot send an Authorization header.)
// Source:
// https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation

export interface ServerEvent {
    name: string;
    text: string;
    /** The last `id` that the server sent. */
    id: string;
}

export class EventReader {
    /**
     * The received pieces of a line that has not ended. They are joined only at the end of the
     * line: the first event has megabytes, and must not be scanned again with each piece.
     */
    private rest: string[] = [];
    /** Whether the last piece ended with a CR, which may be the first half of a CR LF. */
    private isHalf = false;
    private name = '';
    private lines: string[] = [];
    private id: string;

    /** Creates a reader. `id` is the last event id that an earlier reader received. */
    constructor(id = '') {
        this.id = id;
    }

    /** Reads one piece of text. Returns the events that end in this piece. */
    read(piece: string): ServerEvent[] {
        const text = this.isHalf && piece.startsWith('\n') ? piece.slice(1) : piece;
        if (piece !== '') this.isHalf = piece.endsWith('\r');
        const [first = '', ...others] = text.split(/\r\n|\n|\r/);
        this.rest.push(first);
        const lines: string[] = [];
        for (const next of others) {
            lines.push(this.rest.join(''));
            this.rest = [next];
        }
        return lines.flatMap(line => this.line(line));
    }

    private line(line: string): ServerEvent[] {
        if (line === '') return this.ends();
        const colon = line.indexOf(':');
        const field = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
        if (field === 'event') this.name = value;
        else if (field === 'data') this.lines.push(value);
        else if (field === 'id' && !value.includes('\0')) this.id = value;
        return [];
    }

    private ends(): ServerEvent[] {
        const event = { name: this.name || 'message', text: this.lines.join('\n'), id: this.id };
        const isEmpty = this.lines.length === 0;
        this.name = '';
        this.lines = [];
        return isEmpty ? [] : [event];
    }
}

// A table that compares values before and after a change, line by line. The sign of a difference
// gives its direction, and a word says whether the difference is better.

export interface Compared {
    name: string;
    before: number | undefined;
    after: number | undefined;
    text: (value: number | undefined) => string;
    /** Whether a smaller or a larger value is better; undefined if neither is. */
    better?: 'less' | 'more';
}

export function Comparison({
    caption,
    heads,
    rows,
    isOpen,
}: {
    caption: string;
    heads: readonly [string, string];
    rows: readonly Compared[];
    /** Whether it is too early to show a difference. */
    isOpen?: boolean;
}) {
    return (
        <div class="table" role="region" aria-label={caption} tabIndex={0}>
            <table>
                <caption>{caption}</caption>
                <thead>
                    <tr>
                        <th scope="col" class="text">
                            Measure
                        </th>
                        <th scope="col">{heads[0]}</th>
                        <th scope="col">{heads[1]}</th>
                        <th scope="col">Change</th>
                    </tr>
                </thead>
                <tbody>
                    {rows.map(row => (
                        <tr key={row.name}>
                            <th scope="row" class="text">
                                {row.name}
                            </th>
                            <td>{row.text(row.before)}</td>
                            <td>{row.text(row.after)}</td>
                            <td>{isOpen ? '…' : <Change of={row} />}</td>
                        </tr>
                    ))}
                </tbody>
            </table>
        </div>
    );
}

function Change({ of: { before, after, better } }: { of: Compared }) {
    if (before === undefined || after === undefined) return <>–</>;
    const change = before === 0 ? (after === 0 ? 0 : undefined) : (after - before) / before;
    const isSame = change !== undefined && Math.abs(change) < 0.03;
    if (change === undefined) return <>new</>;
    if (isSame) return <>unchanged</>;
    const isBetter = better && (better === 'less') === change < 0;
    return (
        <span class={better ? (isBetter ? 'better' : 'worse') : ''}>
            {change < 0 ? '▼ −' : '▲ +'}
            {Math.abs(change * 100).toFixed(0)}
            {'\u2009'}%{better ? (isBetter ? ' better' : ' worse') : ''}
        </span>
    );
}

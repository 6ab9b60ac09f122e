// A table. A click on a column's head sorts the table, and the arrow keys move through its rows. In
// a long table, only the visible rows are drawn, so that ten thousand rows are as fast as ten.
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ordered, type Key, type Order } from './order';

export interface Column<R> {
    id: string;
    head: string;
    /** The unit of the column's numbers. */
    unit?: string;
    means?: string;
    cell: (row: R) => ComponentChildren;
    /** Returns the key by which the column sorts a row. A column without it cannot be sorted. */
    by?: (row: R) => Key;
    /** Whether the column holds text, which is aligned left. Numbers are aligned right. */
    isText?: boolean;
    /** Whether the column grows with the table. Its text is cut at the end. */
    isWide?: boolean;
}

interface Properties<R> {
    /** The subject of the table, with its time range. */
    caption: string;
    columns: readonly Column<R>[];
    rows: readonly R[];
    keyOf: (row: R) => string | number;
    /** Returns the address that a row leads to. The row's first cell becomes the link. */
    hrefOf?: (row: R) => string;
    selected?: string | number | undefined;
    order?: Order;
    /** The text that is shown if the table has no rows. */
    none?: string;
    hidesCaption?: boolean;
}

const MANY = 150;
const HEIGHT = 31;
/**
 * The maximum number of rows that a screen shows. `MORE` further rows are drawn above and below
 * them.
 */
const SEEN = 26;
/** The number of rows that are drawn above the visible ones, and below them. */
const MORE = 10;

export function Table<R>({
    caption,
    columns,
    rows,
    keyOf,
    hrefOf,
    selected,
    order: first,
    none,
    hidesCaption,
}: Properties<R>) {
    const [order, setOrder] = useState<Order | undefined>(first);
    const column = columns.find(column => column.id === order?.id);
    const sorted = useMemo(
        () => (order && column?.by ? ordered(rows, column.by, order.isDown) : rows),
        [rows, order?.id, order?.isDown],
    );
    const { place, from, to } = useSeen(sorted.length);
    const isMany = sorted.length > MANY;
    return (
        <div class={isMany ? 'table many' : 'table'} ref={place} role="region" aria-label={caption} tabIndex={0}>
            <table aria-rowcount={sorted.length + 1}>
                <caption class={hidesCaption ? 'unseen' : ''}>{caption}</caption>
                <thead>
                    <tr aria-rowindex={1}>
                        {columns.map(column => (
                            <Head key={column.id} column={column} order={order} onOrder={setOrder} />
                        ))}
                    </tr>
                </thead>
                <tbody onKeyDown={walk}>
                    {isMany && from > 0 && <Gap rows={from} columns={columns.length} />}
                    {sorted.slice(from, to).map((row, at) => (
                        <Line
                            key={keyOf(row)}
                            {...{ row, columns, hrefOf }}
                            index={from + at + 2}
                            isSelected={selected !== undefined && keyOf(row) === selected}
                        />
                    ))}
                    {isMany && to < sorted.length && <Gap rows={sorted.length - to} columns={columns.length} />}
                    {sorted.length === 0 && (
                        <tr>
                            <td colSpan={columns.length} class="empty">
                                {none ?? 'Nothing yet.'}
                            </td>
                        </tr>
                    )}
                </tbody>
            </table>
        </div>
    );
}

function Head<R>({
    column,
    order,
    onOrder,
}: {
    column: Column<R>;
    order: Order | undefined;
    onOrder: (order: Order) => void;
}) {
    const isBy = order?.id === column.id;
    const sorts = isBy ? (order.isDown ? 'descending' : 'ascending') : undefined;
    const label = (
        <>
            {column.head}
            {column.by && (
                <span class="sorts" aria-hidden="true">
                    {isBy ? (order.isDown ? '▼' : '▲') : ''}
                </span>
            )}
            {column.unit && <small>{column.unit}</small>}
        </>
    );
    const kind = `${column.isText ? 'text' : 'number'}${column.isWide ? ' wide' : ''}`;
    if (!column.by)
        return (
            <th scope="col" class={kind} title={column.means}>
                {label}
            </th>
        );
    return (
        <th scope="col" class={kind} aria-sort={sorts} title={column.means}>
            <button
                type="button"
                onClick={() => onOrder({ id: column.id, isDown: isBy ? !order.isDown : !column.isText })}
            >
                {label}
            </button>
        </th>
    );
}

interface LineProperties<R> {
    row: R;
    columns: readonly Column<R>[];
    hrefOf: ((row: R) => string) | undefined;
    index: number;
    isSelected: boolean;
}

function Line<R>({ row, columns, hrefOf, index, isSelected }: LineProperties<R>) {
    const href = hrefOf?.(row);
    const go = (event: MouseEvent): void => {
        const isControl = (event.target as Element).closest('a, button, input, select, label');
        if (href && !isControl && !getSelection()?.toString()) location.hash = href;
    };
    return (
        <tr class={`${href ? 'leads' : ''}${isSelected ? ' selected' : ''}`} aria-rowindex={index} onClick={go}>
            {columns.map((column, at) => {
                const kind = `${column.isText ? 'text' : 'number'}${column.isWide ? ' wide' : ''}`;
                const cell = column.cell(row);
                if (at > 0)
                    return (
                        <td key={column.id} class={kind}>
                            {cell}
                        </td>
                    );
                return (
                    <th key={column.id} scope="row" class={kind}>
                        {href ? (
                            <a href={href} aria-current={isSelected ? 'true' : undefined}>
                                {cell}
                            </a>
                        ) : (
                            cell
                        )}
                    </th>
                );
            })}
        </tr>
    );
}

const Gap = ({ rows, columns }: { rows: number; columns: number }) => (
    <tr aria-hidden="true" class="gap">
        <td colSpan={columns} style={{ height: `${rows * HEIGHT}px` }} />
    </tr>
);

/** Determines which rows of a long table are visible. The table has a scroll bar of its own. */
function useSeen(length: number) {
    const place = useRef<HTMLDivElement>(null);
    const [from, setFrom] = useState(0);
    const isMany = length > MANY;
    useLayoutEffect(() => {
        const scrolled = place.current;
        if (!scrolled || !isMany) return;
        let frame = 0;
        const look = (): void => {
            frame = 0;
            const top = Math.floor(scrolled.scrollTop / HEIGHT / 4) * 4;
            setFrom(Math.max(0, Math.min(top - MORE, length - SEEN)));
        };
        const scroll = (): void => void (frame ||= requestAnimationFrame(look));
        look();
        scrolled.addEventListener('scroll', scroll, { passive: true });
        return () => {
            cancelAnimationFrame(frame);
            scrolled.removeEventListener('scroll', scroll);
        };
    }, [isMany, length]);
    return { place, from: isMany ? from : 0, to: isMany ? Math.min(length, from + SEEN + 2 * MORE + 4) : length };
}

/** Moves the focus to the link of the row above or below. */
function walk(event: KeyboardEvent): void {
    const keys = { ArrowDown: 1, ArrowUp: -1 } as Record<string, number>;
    const step = keys[event.key];
    const row = (event.target as Element).closest('tr');
    if (!step || !row || (event.target as Element).matches('input, select, textarea')) return;
    const next = step > 0 ? row.nextElementSibling : row.previousElementSibling;
    const link = next?.querySelector<HTMLElement>('th a, th button, td a, td button');
    if (!link) return;
    event.preventDefault();
    link.focus();
    link.scrollIntoView({ block: 'nearest' });
}

// The panel "Last 15 minutes": the requests of the whole fleet and of each gateway over time. The
// gateway that serves the console reads the summaries of the others.
import { useEffect, useRef, useState } from 'preact/hooks';
import { get } from '../client';
import { clock, number } from '../format';
import { Panel } from '../page';
import type { FleetGateway } from '../shapes';
import { Sparkline } from '../sparkline';
import { type Column, Table } from '../table';
import { Tile } from '../tile';
import { visible } from '../visible';
import { type Course, courses, isSilent, type Known } from './course';

/** The minimum time between two questions to the same gateway, in milliseconds. */
const EVERY = 5000;
/** The last answers, by the gateway's name. A gateway that no longer answers keeps its history. */
const answers = new Map<string, Pick<Known, 'history' | 'problem'> & { asked: number }>();

/** The heads, units and meanings of the courses. */
const SHOWN = [
    ['Answered', '/s', 'Requests that were answered, in time or late.'],
    ['Refused', '/s', 'Requests that were shed, throttled or expired.'],
    ['Waiting', 'requests', 'The mean number of requests that waited for a slot.'],
] as const;

interface Line extends Known {
    course: Course[];
}

export function History({ gateways }: { gateways: readonly FleetGateway[] }) {
    useAnswers(gateways);
    const known: Known[] = gateways.map(gateway => ({ ...answers.get(gateway.name), ...gateway }));
    const { end, each, all } = courses(known);
    const columns = [NAME];
    const tiles = SHOWN.map(([head, unit, means], place) => {
        const course = all[place]!;
        const most = Math.max(...each.map(one => peak(one[place]!)));
        columns.push({
            id: head,
            head,
            unit,
            means,
            isWide: true,
            by: line => line.course[place]!.at(-1),
            cell: line => (
                <>
                    <Sparkline values={line.course[place]!} most={most} />
                    {number(line.course[place]!.at(-1))}
                </>
            ),
        });
        return (
            <Tile
                key={head}
                name={head}
                value={number(course.at(-1))}
                unit={unit}
                window={`10 s to ${clock(end)}`}
                means={means}
                beside={`at most ${number(peak(course))}`}
                course={course}
            />
        );
    });
    return (
        <Panel title="Last 15 minutes">
            <div class="tiles">
                {tiles}
                <Tile
                    name="Gateways"
                    value={`${known.filter(one => !isSilent(one)).length} / ${known.length}`}
                    window="answer now"
                    means="The sums are without the gateways that do not answer."
                />
            </div>
            <Table
                caption="Each gateway, in steps of 10 s"
                columns={columns}
                rows={known.map((one, at): Line => ({ ...one, course: each[at]! }))}
                keyOf={one => one.name}
                order={{ id: 'name', isDown: false }}
            />
        </Panel>
    );
}

const NAME: Column<Line> = {
    id: 'name',
    head: 'Gateway',
    isText: true,
    isWide: true,
    by: one => one.name,
    cell: one => (
        <>
            <span class="hostile">{visible(one.name)}</span>{' '}
            {isSilent(one) && (
                <span class="tag bad" title={one.problem}>
                    no answer
                </span>
            )}
        </>
    ),
};

const peak = (course: Course): number => Math.max(...course.map(value => value ?? 0));

/**
 * Reads the summaries of the gateways, one after another, while the view is open and the page is
 * visible.
 */
function useAnswers(gateways: readonly FleetGateway[]): void {
    const [, again] = useState(0);
    const latest = useRef(gateways);
    latest.current = gateways;
    useEffect(() => {
        let isOpen = true;
        const ask = async (): Promise<void> => {
            for (const one of latest.current) if (isOpen && one.is_current && !document.hidden) await read(one.name);
            if (!isOpen) return;
            again(count => count + 1);
            setTimeout(ask, 1000);
        };
        void ask();
        return () => void (isOpen = false);
    }, []);
}

/** Reads the summary of a gateway, unless the last question is more recent than `EVERY`. */
async function read(name: string): Promise<void> {
    const now = performance.now();
    const answer = answers.get(name) ?? { asked: -EVERY };
    if (now - answer.asked < EVERY) return;
    answers.set(name, answer);
    answer.asked = now;
    try {
        answer.history = await get('/v1/fleet/{name}/history', { name });
        answer.problem = undefined;
    } catch (error) {
        answer.problem = (error as Error).message;
    }
}

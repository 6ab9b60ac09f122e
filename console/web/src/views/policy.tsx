// The view "What is in force, and what would change?": policies with their parameters, the mode of
// each class, the overrides of the configuration file, the effect of enforcing, and the audit log.
import { useCourse } from '../course';
import { useDocument } from '../document';
import { moment } from '../format';
import { gatewayNow, revisions } from '../live';
import { Page, Panel } from '../page';
import { Bypass } from '../policy/bypass';
import { ClassPolicies } from '../policy/classes';
import { Export } from '../policy/export';
import { History } from '../policy/history';
import { Parameters } from '../policy/parameters';
import { WouldChange } from '../policy/would';
import { Problem } from '../problem';
import type { Seen } from '../shell';
import { use } from '../signal';
import { rangeNamed } from '../course';

export function Policy({ place }: Seen) {
    const changed = use(revisions);
    const { value, problem, reload } = useDocument('/v1/policy', { revision: changed?.policy, every: 30_000 });
    const range = rangeNamed(place.query.range);
    const course = useCourse(range);
    return (
        <Page
            question="What is in force, and what would change?"
            json={['/v1/policy', '/v1/audit', '/v1/export', `/v1/history?range=${range}`]}
            tools={value && <Bypass policy={value} reload={reload} />}
        >
            <Problem of={problem} again={() => void reload()} />
            {value && (
                <>
                    <Panel
                        title="In force"
                        aside={
                            <span class="why hostile">
                                {value.file
                                    ? `${value.file}, loaded ${moment(value.read_ms, gatewayNow())}`
                                    : `a configuration without a file, since ${moment(value.read_ms, gatewayNow())}`}
                            </span>
                        }
                    >
                        <dl class="facts">
                            <dt title="Which waiting request gets the next slot">Scheduler</dt>
                            <dd>
                                <Parameters of={value.scheduler} />
                            </dd>
                            <dt title="How many requests run at once">Concurrency limit</dt>
                            <dd>
                                <Parameters of={value.concurrency} />
                            </dd>
                            <dt title="How long a request may run">Termination</dt>
                            <dd>
                                <Parameters of={value.terminate} />
                            </dd>
                            <dt title="The mode of classes without a mode of their own">Mode</dt>
                            <dd>
                                <b>{value.mode}</b>{' '}
                                {value.bypassed && <span class="tag bad">▲ bypassed: no decisions</span>}
                            </dd>
                        </dl>
                        {!value.kept && (
                            <p class="note">
                                Overrides are lost when this process ends, because the configuration has no{' '}
                                <code>state.directory</code>.
                            </p>
                        )}
                    </Panel>
                    <Panel title="Classes">
                        <ClassPolicies policy={value} reload={reload} />
                    </Panel>
                    <WouldChange policy={value} {...course} range={range} />
                </>
            )}
            <History />
            <Export revision={`${changed?.policy} ${changed?.elephants}`} />
        </Page>
    );
}

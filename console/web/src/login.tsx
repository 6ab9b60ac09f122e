// The login page: the command that prints a token, and a field for the token. The address bar keeps
// the address that the operator wanted to open.
import { visible } from './visible';
import { useState } from 'preact/hooks';
import { type Refused } from './client';
import { enterByHand } from './enter';
import { Problem } from './problem';

export function Login({ why }: { why: Refused }) {
    const [pasted, setPasted] = useState('');
    const [refused, setRefused] = useState<Refused>();
    const enter = async (event: Event): Promise<void> => {
        event.preventDefault();
        setRefused(await enterByHand(pasted));
    };
    return (
        <section class="login panel">
            <h1>{why.code === 'expired' ? 'Your token has expired' : 'Log in'}</h1>
            <p class="problem" role="alert">
                {visible(why.message)}
            </p>
            <p>Run this command on the machine of the gateway, and open the link that it prints:</p>
            <pre>bywash console</pre>
            <form onSubmit={event => void enter(event)}>
                <label for="token">Or paste the link or its token here</label>
                <div class="row">
                    <input
                        id="token"
                        type="text"
                        autocomplete="off"
                        spellcheck={false}
                        value={pasted}
                        onInput={event => setPasted(event.currentTarget.value)}
                    />
                    <button type="submit" class="main">
                        Log in
                    </button>
                </div>
                <Problem of={refused} />
            </form>
        </section>
    );
}

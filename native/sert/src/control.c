/* The controller of paper 2. Source: SERT section 3.2; it is the same as the engine's `loss`
 * (lab/golden/termination.csv).
 *
 * p is the fraction of an interval's requests that were refused or ran too long. Requests whose
 * clients left are not in it, because they say nothing about the load. */
#include "control.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "real.h"
#include "stop.h"
#include "tell.h"
#include "thread.h"

#define MILLISECOND 1e6
#define DAY_MS 86400e3
#define ALPHA 4.0
#define HIGH 0.15
#define LOW 0.05
#define INTERVAL_MS 10000u
#define LEAST_INTERVAL_MS 100u
#define WARM_UP 3u
#define MOST_PAUSE 250000000u

struct class {
    struct sert_arg arg;
    uint64_t since;                 /* the begin of the interval */
    _Atomic uint64_t counted_from;  /* requests that began later are not in the following counts */
    uint64_t arrived, lost;
    double loss;
    _Atomic bool is_set;
    _Atomic uint64_t threshold, changed_at, refused;
    _Atomic uint32_t flags, warm_up;
};

/* `guard` protects everything that is not atomic. */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct class classes[SERT_CLASSES];

static double or_else(double given, double standard) {
    return given == 0.0 ? standard : given < 0.0 ? 0.0 : given;
}

static struct sert_arg with_defaults(const struct sert_arg *arg) {
    struct sert_arg whole = *arg;
    whole.alpha = or_else(arg->alpha, ALPHA);
    whole.hw = or_else(arg->hw, HIGH);
    whole.lw = or_else(arg->lw, LOW);
    whole.interval_ms = arg->interval_ms ? arg->interval_ms : INTERVAL_MS;
    whole.warm_up = arg->warm_up ? arg->warm_up : WARM_UP;
    return whole;
}

/* Returns a text that says what is wrong with `arg`, or NULL. The comparisons are false for NaN. */
static const char *fault(const struct sert_arg *arg) {
    if (arg->size != sizeof *arg) return "size is not sizeof(struct sert_arg)";
    if (arg->class_id >= SERT_CLASSES) return "class_id is not below SERT_CLASSES";
    if (!(arg->lb_ms > 0.0)) return "lb_ms is not above 0";
    if (!(arg->ub_ms >= arg->lb_ms)) return "lb_ms is above ub_ms";
    if (!(arg->ub_ms <= DAY_MS)) return "ub_ms is more than a day";
    struct sert_arg whole = with_defaults(arg);
    if (!(whole.alpha >= 0.0 && whole.alpha <= 100.0)) return "alpha is not from 0 to 100";
    if (!(whole.lw < whole.hw && whole.hw <= 1.0)) return "lw must be below hw, and hw must be at most 1";
    if (whole.interval_ms < LEAST_INTERVAL_MS) return "interval_ms is below 100";
    if (arg->flags & ~(SERT_COOPERATIVE | SERT_NO_WARM_UP | SERT_FREES_OTHERS)) return "flags has an unknown flag";
    return NULL;
}

static double granted(const struct sert_arg *whole, double p) {
    if (p <= whole->lw) return 1.0;
    if (p >= whole->hw) return 0.0;
    return pow((whole->hw - p) / (whole->hw - whole->lw), whole->alpha);
}

static uint64_t threshold_for(const struct sert_arg *whole, double p) {
    double least = whole->lb_ms * MILLISECOND, most = whole->ub_ms * MILLISECOND;
    return (uint64_t)(least + granted(whole, p) * (most - least));
}

/* Returns p, the lost fraction. Without arrivals it is 0: the requests that were stopped in the
 * interval had arrived before it. */
static double loss_of(uint64_t arrived, uint64_t lost) {
    return arrived ? fmin((double)lost / (double)arrived, 1.0) : 0.0;
}

uint64_t SERT_threshold(const struct sert_arg *arg, uint64_t arrived, uint64_t lost) {
    struct sert_arg whole = with_defaults(arg);
    return threshold_for(&whole, loss_of(arrived, lost));
}

static void set_threshold(struct class *class, uint64_t threshold, uint64_t now) {
    if (atomic_exchange(&class->threshold, threshold) != threshold) {
        atomic_store(&class->changed_at, now);
    }
}

int control_set(const struct sert_arg *arg) {
    const char *wrong = fault(arg);
    if (wrong) {
        tell_once(TELL_BAD_ARGS, wrong);
        return EINVAL;
    }
    struct class *class = &classes[arg->class_id];
    struct sert_arg whole = with_defaults(arg);
    REAL(pthread_mutex_lock)(&guard);
    if (!atomic_load(&class->is_set) || memcmp(&class->arg, &whole, sizeof whole) != 0) {
        if (!atomic_load(&class->is_set)) {
            class->since = thread_now();
        }
        class->arg = whole;
        set_threshold(class, threshold_for(&whole, class->loss), thread_now());
        atomic_store(&class->flags, whole.flags);
        atomic_store(&class->warm_up, whole.flags & SERT_NO_WARM_UP ? 0 : whole.warm_up);
        atomic_store(&class->is_set, true);
        REAL_VERSION(pthread_cond_signal, "GLIBC_2.3.2")(&changed);
    }
    REAL(pthread_mutex_unlock)(&guard);
    return 0;
}

bool control_is_set(uint32_t class_id) {
    return class_id < SERT_CLASSES && atomic_load_explicit(&classes[class_id].is_set, memory_order_acquire);
}

uint64_t control_threshold(uint32_t class_id) {
    return atomic_load_explicit(&classes[class_id].threshold, memory_order_relaxed);
}

uint64_t control_changed(uint32_t class_id) {
    return atomic_load_explicit(&classes[class_id].changed_at, memory_order_relaxed);
}

bool control_has_flag(uint32_t class_id, uint32_t flag) {
    return atomic_load_explicit(&classes[class_id].flags, memory_order_relaxed) & flag;
}

uint32_t control_warm_up(uint32_t class_id) {
    return atomic_load_explicit(&classes[class_id].warm_up, memory_order_relaxed);
}

bool control_is_of_interval(uint32_t class_id, uint64_t time) {
    return time >= atomic_load(&classes[class_id].counted_from);
}

void control_refused(uint32_t class_id) {
    atomic_fetch_add_explicit(&classes[class_id].refused, 1, memory_order_relaxed);
}

static uint64_t load(const _Atomic uint64_t *counter) {
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Sums the counts of all threads, including those that have ended. For `overshoot_max`, takes the
 * maximum instead. */
static void sum(uint32_t class_id, struct sert_stats *into) {
    for (unsigned slot = 1; slot < thread_slots(); slot++) {
        const struct thread *thread = thread_at(slot);
        const struct counts *counts = &thread->counts[class_id];
        into->arrived += load(&counts->arrived);
        into->completed += load(&counts->completed);
        into->terminated += load(&counts->terminated);
        into->gone += load(&counts->gone);
        into->cancelled += load(&counts->cancelled);
        into->masked += load(&counts->masked);
        into->locked += load(&counts->locked);
        into->gated += load(&counts->gated);
        into->late += load(&counts->late);
        into->survivors += load(&counts->survivors);
        into->overshoot_ns += load(&counts->overshoot);
        uint64_t largest = load(&counts->overshoot_max);
        into->overshoot_max_ns = largest > into->overshoot_max_ns ? largest : into->overshoot_max_ns;
    }
    into->refused = load(&classes[class_id].refused);
    into->arrived += into->refused;
}

static uint64_t strays(uint32_t class_id) {
    uint64_t all = 0;
    for (unsigned slot = 1; slot < thread_slots(); slot++) {
        all += load(&thread_at(slot)->counts[class_id].strays);
    }
    return all;
}

void control_stats(struct sert_stats *stats) {
    uint32_t class_id = stats->class_id;
    *stats = (struct sert_stats){.size = sizeof *stats, .class_id = class_id};
    sum(class_id, stats);
    REAL(pthread_mutex_lock)(&guard);
    stats->loss = classes[class_id].loss;
    REAL(pthread_mutex_unlock)(&guard);
    stats->threshold_ns = control_threshold(class_id);
}

static uint64_t interval_of(const struct class *class) {
    return class->arg.interval_ms * (uint64_t)MILLISECOND;
}

/* Ends an interval of a class and sets the next threshold. */
static void turn(uint32_t class_id, uint64_t now) {
    struct class *class = &classes[class_id];
    uint64_t passed = (now - class->since) / interval_of(class);
    struct sert_stats total = {0};
    atomic_store(&class->counted_from, thread_now());
    sum(class_id, &total);
    /* A request that came and left within an interval did not arrive in it, so that a crowd that
     * leaves hides no loss. A request that begins or leaves at this very moment may be subtracted
     * from an interval that has not counted it; in that case the difference may be negative, and
     * the losses replace it. */
    uint64_t lost = total.refused + total.terminated, arrived = total.arrived - strays(class_id);
    uint64_t came = arrived >= class->arrived ? arrived - class->arrived : lost - class->lost;
    /* The loss covers all intervals that have passed, if the controller was delayed. Without
     * arrivals there is no loss. */
    class->loss = loss_of(came, lost - class->lost);
    class->since += passed * interval_of(class);
    class->arrived = arrived;
    class->lost = lost;
    set_threshold(class, threshold_for(&class->arg, class->loss), now);
}

/* Returns the time between two checks of running requests: a quarter of the shortest threshold for
 * which requests do not arm their own timers. */
static uint64_t look_every(void) {
    uint64_t shortest = MOST_PAUSE * 4;
    for (uint32_t i = 0; i < SERT_CLASSES; i++) {
        uint64_t threshold = control_threshold(i);
        bool counts = control_is_set(i) && threshold >= CONTROL_LEAST_WATCHED;
        shortest = counts && threshold < shortest ? threshold : shortest;
    }
    return shortest / 4;
}

/* Returns the end of the next interval of any class. */
static uint64_t next_turn(uint64_t latest) {
    uint64_t next = latest;
    for (uint32_t i = 0; i < SERT_CLASSES; i++) {
        uint64_t end = classes[i].since + interval_of(&classes[i]);
        next = control_is_set(i) && end < next ? end : next;
    }
    return next;
}

static void *control(void *nothing) {
    (void)nothing;
    /* Use real-time scheduling where permitted: the controller must be able to lower a threshold
     * while the workers use every processor. */
    pthread_setschedparam(pthread_self(), SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
    REAL(pthread_mutex_lock)(&guard);
    for (;;) {
        uint64_t now = thread_now();
        for (uint32_t i = 0; i < SERT_CLASSES; i++) {
            if (control_is_set(i) && now >= classes[i].since + interval_of(&classes[i])) {
                turn(i, now);
            }
        }
        /* Arm the timers of all requests that are due before the check after the next one. */
        uint64_t pause = look_every(), next = next_turn(now + pause);
        stop_arm_all(now + 2 * pause);
        struct timespec until = {(time_t)(next / 1000000000u), (long)(next % 1000000000u)};
        REAL(pthread_cond_clockwait)(&changed, &guard, CLOCK_MONOTONIC, &until);
    }
    return NULL;
}

int control_start(void) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_t thread;
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = REAL(pthread_create)(&thread, NULL, control, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed) {
        pthread_detach(thread);
    }
    return failed;
}

void control_forked(void) {
    pthread_mutex_init(&guard, NULL);
    pthread_cond_init(&changed, NULL);
}

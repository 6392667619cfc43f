"""Every Prometheus metric of Sandpiper, declared once. Names start with `sandpiper_`.

Keep labels few and bounded: never an id of a run, episode or message, except `run` where it says so.
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import Counter, Gauge, Histogram, start_http_server

_FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_SLOW = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600)

# Bus
MESSAGES_PRODUCED = Counter(
    "sandpiper_messages_produced_total", "Messages that the broker acknowledged", ["topic"]
)
PRODUCE_SECONDS = Histogram(
    "sandpiper_produce_seconds", "From send to acknowledgement, retries included", ["topic"], buckets=_FAST
)
MESSAGES_CONSUMED = Counter(
    "sandpiper_messages_consumed_total",
    "Messages whose handling ended, by outcome: ok, dead_lettered, abandoned (stopped before its end)",
    ["topic", "outcome"],
)
MESSAGES_DEAD_LETTERED = Counter(
    "sandpiper_messages_dead_lettered_total", "Messages sent to a DLQ, by reason", ["topic", "reason"]
)
HANDLER_RETRIES = Counter(
    "sandpiper_handler_retries_total", "Tries of a handler that failed and will be repeated", ["topic"]
)
HANDLER_SECONDS = Histogram(
    "sandpiper_handler_seconds",
    "Time in a handler per message or batch, retries included",
    ["topic"],
    buckets=_SLOW,
)
MESSAGE_AGE_SECONDS = Histogram(
    "sandpiper_message_age_seconds",
    "From the broker's timestamp to the start of handling",
    ["topic"],
    buckets=_SLOW,
)
HANDLERS_RUNNING = Gauge("sandpiper_handlers_running", "Handlers running now, by consumer group", ["group"])
CONSUMER_PAUSED = Gauge(
    "sandpiper_consumer_paused", "1 while a full consumer holds its partitions paused", ["group"]
)
BUS_RECONNECTS = Counter(
    "sandpiper_bus_reconnects_total", "Times a client lost the broker and opened a new session", ["client"]
)

# Orchestrator
OUTBOX_LAG_SECONDS = Gauge("sandpiper_outbox_lag_seconds", "Age of the oldest unpublished outbox row")
OUTBOX_ROWS = Gauge("sandpiper_outbox_rows", "Outbox rows not yet published")
EPISODES = Gauge("sandpiper_episodes", "Episodes that exist now, by state", ["state"])
EPISODE_TRANSITIONS = Counter(
    "sandpiper_episode_transitions_total", "Changes of an episode's state, by new state", ["state"]
)
INFRA_FAILURES = Counter(
    "sandpiper_infra_failures_total",
    "Infrastructure failures, by the boundary they crossed",
    ["boundary", "reason"],
)
DEADLINES_MISSED = Counter(
    "sandpiper_deadlines_missed_total", "Deadlines that passed before the result came, by kind", ["kind"]
)

# Inference
TOKENS_GENERATED = Counter("sandpiper_tokens_generated_total", "Tokens sampled from the policy")
TOKENS_PROMPT = Counter("sandpiper_tokens_prompt_total", "Prompt tokens read by the engine")
GENERATION_SECONDS = Histogram(
    "sandpiper_generation_seconds", "From request received to turn generated", buckets=_SLOW
)
GENERATIONS_RUNNING = Gauge("sandpiper_generations_running", "Requests inside the engine now")
POLICY_VERSION = Gauge("sandpiper_policy_version", "Policy version served or trained, by role", ["role"])
POLICY_LOAD_SECONDS = Histogram(
    "sandpiper_policy_load_seconds", "Fetching, loading and probing one policy version", buckets=_SLOW
)

# Sandboxes
SANDBOX_EXECUTIONS = Counter("sandpiper_sandbox_executions_total", "Executions by typed outcome", ["outcome"])
SANDBOX_CREATE_SECONDS = Histogram(
    "sandpiper_sandbox_create_seconds", "Creating or restoring a sandbox", buckets=_FAST
)
SANDBOX_RUN_SECONDS = Histogram("sandpiper_sandbox_run_seconds", "Wall time of one execution", buckets=_SLOW)
SANDBOXES = Gauge("sandpiper_sandboxes", "Sandboxes that exist now")
EXECUTOR_SLOTS = Gauge("sandpiper_executor_slots", "Slots of this executor, by state: total, used", ["state"])
SNAPSHOT_BYTES = Histogram(
    "sandpiper_snapshot_bytes", "Size of one stored snapshot", buckets=(1e3, 1e4, 1e5, 1e6, 1e7, 1e8)
)

# Grading
GRADING_SECONDS = Histogram(
    "sandpiper_grading_seconds", "From request received to graded, by verdict", ["verdict"], buckets=_SLOW
)

# Learning
TRAINING_STEP_SECONDS = Histogram("sandpiper_training_step_seconds", "One optimizer step", buckets=_SLOW)
TRAINING_STEPS = Counter("sandpiper_training_steps_total", "Optimizer steps taken")
TRAJECTORIES_TRAINED = Counter("sandpiper_trajectories_trained_total", "Trajectories in optimizer steps")
TRAJECTORIES_DROPPED = Counter(
    "sandpiper_trajectories_dropped_total", "Trajectories not trained, by reason", ["reason"]
)
REWARD_MEAN = Gauge("sandpiper_reward_mean", "Mean reward of the last step", ["run"])
STALENESS = Histogram(
    "sandpiper_staleness_versions",
    "Policy versions between generation and training",
    buckets=(0, 1, 2, 3, 4, 6, 8, 16),
)

# Api
HTTP_REQUESTS = Counter(
    "sandpiper_http_requests_total",
    "Requests answered, by method, route template and status",
    ["method", "route", "status"],
)
HTTP_SECONDS = Histogram(
    "sandpiper_http_seconds",
    "From request to the end of its response, by route template",
    ["route"],
    buckets=_SLOW,
)
EVENT_STREAMS = Gauge("sandpiper_event_streams", "Event streams that are open now")
EVENTS_LOST = Counter("sandpiper_events_lost_total", "Live events dropped because a client did not keep up")


def serve_metrics(port: int, host: str = "0.0.0.0") -> Callable[[], None]:
    """Serve `/metrics` from a thread; returns what stops it. For processes without `service.serve`."""
    server, thread = start_http_server(port, addr=host)

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join(timeout=2)

    return stop

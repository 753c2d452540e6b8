"""`spanlab optimize`: tune a detector's prompt on labelled items."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from spanlab.cli.model_options import (
    Claims,
    Corpus,
    English,
    MaxCalls,
    MaxCost,
    MaxSearches,
    Model,
    ModelOption,
    Options,
    Price,
    Rate,
    Retriever,
    SearchUrl,
)
from spanlab.errors import UsageError


def optimize(
    dataset: Annotated[str, typer.Argument(help="A dataset with labels.")],
    detector: Annotated[str, typer.Option(help="What to tune, e.g. ucsc-extract.")],
    member: Annotated[
        str | None, typer.Option(help="Of an ensemble, such as ucsc: the member to tune.")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help="iou, corr, max-iou, iou+corr or all (default: what the member is for, or iou); "
            "verdict-f1 for detectors that judge claims; type-f1 (types of errors in steps) or "
            "answer-f1 (the generator of `spanlab reason`, on questions) for safe."
        ),
    ] = None,
    auto: Annotated[
        Literal["light", "medium", "heavy"] | None,
        typer.Option(help="How much to try (default: light, without --trials)."),
    ] = None,
    trials: Annotated[int | None, typer.Option(min=1, help="So many candidate prompts.")] = None,
    folds: Annotated[
        int, typer.Option(min=0, help="Cross-validate in so many folds; 0 measures nothing.")
    ] = 2,
    labels: Annotated[
        Literal["gold", "reviewed", "vote"],
        typer.Option(help="Reference labels: gold, those of people's reviews, or a vote."),
    ] = "gold",
    annotators: Annotated[
        str | None, typer.Option(help="For reviewed and vote: names with commas between.")
    ] = None,
    lang: Annotated[
        list[str] | None, typer.Option(help="Only items of this language. Repeatable.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Tune for one language; --transfer says on which items.")
    ] = None,
    transfer: Annotated[
        Literal["each", "pooled", "others"],
        typer.Option(help="With --target: its own items, all, or the others'."),
    ] = "each",
    model: Model = None,
    prompt_model: Annotated[
        str | None, typer.Option(help="Writes new instructions (default: the task's model).")
    ] = None,
    retriever: Retriever = None,
    search_url: SearchUrl = None,
    corpus: Corpus = None,
    claims: Claims = False,
    english: English = False,
    price: Price = None,
    option: Options = None,
    model_option: ModelOption = None,
    strategy: Annotated[
        Literal["mipro", "gepa"], typer.Option(help="How prompts are searched.")
    ] = "mipro",
    start: Annotated[
        str | None, typer.Option(help="A program to begin from (default: the own prompt).")
    ] = None,
    name: Annotated[str | None, typer.Option(help="What the program will be called.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=4, help="At most so many items, claims, steps.")
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(min=1, max=256, help="Calls under way at once (default 8).")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of every random choice.")] = 9,
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    max_searches: MaxSearches = None,
    rate: Rate = None,
    again: Annotated[
        bool, typer.Option("--again", help="Also if a search under way is the same.")
    ] = False,
    use: Annotated[
        bool, typer.Option("--use", help="Let the detector use it, if it is better beyond chance.")
    ] = False,
    queue: Annotated[
        bool, typer.Option("--queue", help="Leave it to the app or a worker, do not work on it.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Only print the most that it can take: evaluations, calls, cost."
        ),
    ] = False,
) -> None:
    """Tune a detector's prompt on labels that people made, and keep it as a program.

    Instructions and demonstrations are searched together (MIPROv2). Held-out items tell what the
    result is worth; one that is not better than the untuned prompt says so. Detectors that judge
    claims are tuned on claims with verdicts, safe on steps: trials are scored by accuracy, what is
    held out by macro F1. The search is a job: Ctrl+C pauses it, and no answer that was paid for is
    asked for again.

    \b
    spanlab optimize mine --detector ucsc-extract --metric iou --auto light
    spanlab optimize mine --detector ucsc-extract --labels reviewed --annotators Ada,Ben
    spanlab optimize mine --detector ucsc --member ucsc-4-gpt4o-extract-any --use
    spanlab optimize mine --detector veritrail --metric verdict-f1
    spanlab optimize mine --detector safe --metric type-f1 --labels reviewed
    spanlab optimize questions --detector safe --metric answer-f1
    spanlab optimize mine --detector ucsc-extract --target eu --transfer others --trials 10
    """
    from optimizers.choosing import TuningForm, optimisation_of
    from optimizers.request import THREADS
    from spanlab.cli import model_options, optimizing

    if use and queue:
        raise UsageError("--use waits for the end of the search: leave --queue out")
    if use and folds == 0:
        raise UsageError("--use goes by scores on held-out items: take 2 folds or more")
    asked = (None, start, price, option, model_option, search_url)
    form = TuningForm(
        dataset=dataset,
        choice=model_options.choice([detector], model, retriever, corpus, claims, english, *asked),
        name=name or "",
        prompt_model=prompt_model or "",
        member=member or "",
        metric=metric or "",
        strategy=strategy,
        auto=auto or (None if trials else "light"),
        trials=trials,
        folds=folds,
        labels=labels,
        annotators=tuple(part.strip() for part in (annotators or "").split(",") if part.strip()),
        languages=tuple(lang or ()),
        target=target or "",
        transfer=transfer,
        limit=limit,
        threads=concurrency or THREADS,
        seed=seed,
        budget_calls=max_calls,
        budget_cost=max_cost,
        budget_searches=max_searches,
        rate=rate,
    )
    request = optimisation_of(form)
    if dry_run:
        optimizing.estimate_search(request)
    elif queue:
        optimizing.enqueue(request, again=again)
    else:
        optimizing.run(request, use=use, again=again)

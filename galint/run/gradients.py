"""What happens to gradients: backward, clearing, unscaling, clipping, rescaling and the optimizer step."""

from __future__ import annotations

from dataclasses import replace

from galint import program as p
from galint.ledger import ONE, Coefficient, Entry, LossFacts, Mark, OptimizerLedger, Step, plain
from galint.run.clipped import clips, place_of_clip
from galint.run.facts import BackwardFact, Micro
from galint.run.frame import RunOver
from galint.run.opened import held, models_of, same_module
from galint.run.unknowns import Unknowns
from galint.run.values import Module, Optimizer, Tensor, Value
from galint.source import Span


class Gradients(Unknowns):
    """The ledgers of the optimizers, and what is written into them."""

    # --- ledgers -------------------------------------------------------------------------------

    def ledger(self, optimizer: Optimizer, *, stepping: bool = False) -> OptimizerLedger:
        """The optimizer's ledger, begun with what was accumulated before it was first seen."""
        key = self._optimizer_key(optimizer)
        ledger = self.result.ledgers.get(key)
        if ledger is None:
            ledger = self.base.clone(key)
            others = [o for k, o in self.result.ledgers.items() if k not in self.gone_by or plain(k) != plain(key)]
            owned = {e.seq for other in others for e in other.gone()}
            if stepping:  # together with others, which have stepped since the last backward: all apply the same loss
                latest = self.result.backwards[-1].seq if self.result.backwards else 0
                owned -= {e.seq for other in others for s in other.steps[-1:] if s.seq > latest for e in s.applied}
            ledger.lost = [(e, m) for e, m in ledger.lost if e.seq not in owned]  # another optimizer's loss
            ledger.pending = [
                e for e in ledger.pending if e.seq not in owned or self.related(self._modules_of(e), optimizer.modules)
            ]
            if optimizer.born_seq:  # made after those gradients were accumulated
                ledger.pending = [e for e in ledger.pending if e.seq > optimizer.born_seq]
                ledger.lost = [(e, m) for e, m in ledger.lost if e.seq > optimizer.born_seq]
                ledger.marks = [m for m in ledger.marks if m.seq > optimizer.born_seq]
            if optimizer.modules:
                ledger.pending = [
                    e
                    for e in ledger.pending
                    if not self._modules_of(e) or self.related(self._modules_of(e), optimizer.modules)
                ]
            kept = {e.micro for e in ledger.pending} | {e.micro for e, _ in ledger.lost}
            ledger.window = [t for t in ledger.window if t in kept]
            self.result.ledgers[key] = ledger
        return ledger

    def _modules_of(self, entry: Entry) -> frozenset[int]:
        fact = self._by_seq.get(entry.seq)
        return fact.modules if fact else frozenset()

    def _beyond(self, entry: Entry, modules: frozenset[int]) -> bool:
        """Whether a loss came through other modules as well, whose optimizer has done nothing yet."""
        return any(not self.related(frozenset({ident}), modules) for ident in self._modules_of(entry))

    @property
    def _by_seq(self) -> dict[int, BackwardFact]:
        return {b.seq: b for b in self.result.backwards}

    def _optimizer_key(self, optimizer: Optimizer) -> str:
        for key, known in self.optimizers.items():
            if known is optimizer:
                return key
        key = optimizer.path or "optimizer"
        while key in self.optimizers:
            key += "'"
        self.optimizers[key] = optimizer
        self.result.optimizers[key] = optimizer
        return key

    def renew(self, old: Value | None, new: Optimizer) -> None:
        """An optimizer made anew in the place of one that has just stepped goes on with the gradients of its parameters."""
        if not isinstance(old, Optimizer) or not self.loops or old.modules != new.modules:
            return
        key = next((k for k, known in self.optimizers.items() if known is old), "")
        ledger = self.result.ledgers.get(key)
        if ledger and ledger.steps and ledger.steps[-1].position == tuple(f.iteration for f in self.loops):
            self.optimizers[key] = self.result.optimizers[key] = new

    def freeze(self, modules: frozenset[int], wanted: bool | None) -> None:
        """`requires_grad` of parameters inside a training loop. What is frozen before the loops stays as it is: a network
        that is frozen as a whole and opened in parts is not told apart from one that is frozen.
        """
        if wanted is None or all(q.role == "idle" for q in self.loops):
            return
        self.frozen = self.frozen - modules if wanted else self.frozen | modules

    # --- synchronisation -----------------------------------------------------------------------

    def syncs(self, module: Module) -> bool:
        """Whether a wrapper would synchronise gradients now: its flag is on and no `no_sync` of its is open.

        Accelerate's `accumulate(model)` opens the model's own `no_sync` on the micro-batches that do not step.
        """
        return module.sync and not any(
            (c.kind == "no_sync" and (c.target is None or same_module(c.target, module)))
            or (c.kind == "accumulate" and held(c) and any(same_module(m, module) for m in models_of(c)))
            for c in self.contexts
        )

    def _synced(self, ident: int, at_forward: bool) -> bool:
        """DDP decides at the forward; FSDP asks `_sync_gradients` in its hook after the backward, FSDP2 likewise."""
        module = self.result.modules.get(ident)
        return self.syncs(module) if isinstance(module, Module) and module.wrap in {"fsdp", "fsdp2"} else at_forward

    # --- accumulating --------------------------------------------------------------------------

    def backward(self, tensor: Tensor, span: Span, factor: Coefficient = ONE, name: str = "") -> None:
        """Accumulate the gradient of `tensor` in every optimizer it may reach."""
        self.burn(5)
        if self.leading:
            self.guards[:] = [replace(g, moduli=()) if g in self.leading else g for g in self.guards]
            self.leading = []
        span = self.place(span)
        done: Tensor | None = tensor
        while done is not None:
            done.done, done = True, done.parent
        micro = self.token()
        scaled = tensor.scaled is not None
        by_weight: dict[Coefficient, frozenset[str]] = {}
        for t in tensor.terms:
            weight = t.coefficient.combine(factor)
            by_weight[weight] = by_weight.get(weight, frozenset()) | t.keys
        terms = tuple(by_weight) or (factor,)
        keys = frozenset().union(*(t.keys for t in tensor.terms)) | tensor.keys
        sync = tuple((str(ident), self._synced(ident, flag)) for ident, flag in sorted(tensor.synced.items()))
        facts = LossFacts(
            terms,
            tensor.summed,
            tensor.hidden,
            sync,
            frozenset(map(str, tensor.bypassed)),
            keys,
            tensor.scaled_at,
            tuple(by_weight.values()),
            tensor.penalties,
        )
        if tensor.unknown_scale or self.items_scaled:
            facts = replace(facts, hidden=facts.hidden | {"?"})
        seq = self.tick()
        micros = sorted({t.micro for t in tensor.terms} or {0})
        parts = len(micros)
        if micros[-1] > micro and self._counts_iterations():
            micros = self._joined(micros, micro)
        latest = micros[-1] if micros[-1] else -micro  # data from before the loops: its own identity each time
        if len(micros) == 1:
            micros = [latest]
        for token in micros:
            self.note_micro(token)
        reached: list[str] = []
        targets = [(self.base, "", True)]
        for key, ledger in self.result.ledgers.items():
            optimizer = self.optimizers.get(key)
            mods = optimizer.modules if optimizer is not None else frozenset()
            if self.toggled is not None and optimizer is not self.toggled:
                continue
            sure = bool(mods and tensor.modules)
            if sure and not self.related(mods, tensor.modules):
                continue
            targets.append((ledger, key, sure))
        for ledger, key, sure in targets:
            for token in micros:
                own = [
                    t.coefficient
                    for t in reversed(tensor.terms)
                    if t.micro == token or token == micro or len(micros) == 1
                ]
                # Of a weighted sum, the addend without a weight of its own tells how the sum is divided.
                coefficient = min(own, key=lambda c: len(c.symbols)).combine(factor) if own else factor
                ledger.backward(Entry(token, coefficient, scaled, span, seq, facts, sure))
            if key:
                reached.append(key)
        self.result.backwards.append(
            BackwardFact(
                span,
                seq,
                latest,
                facts,
                scaled,
                self.file,
                tuple(reached),
                tensor.modules,
                name,
                self.where(),
                parts,
            )
        )
        self.event("backward", span, coefficient=terms[0], scaled=scaled, sync=sync, terms=terms)
        for loop in self.loops:
            loop.backwards = True
        held = (self.result.modules.get(ident) for ident in tensor.modules)
        if still := {m.ident for m in held if isinstance(m, Module) and not m.training}:
            self.result.facts.setdefault("still", set()).update(still)
        # Several loops inside each other can run many backwards for each micro-batch: some windows are to be seen.
        limit = self.max_backwards * (5 if self.steps_taken < 3 and len(self.loops) > 2 else 1)
        if len(self.result.backwards) >= limit:
            self._stop()

    def _counts_iterations(self) -> bool:
        """Whether the innermost running loop's own iterations are what a guard of its steps counts."""
        node = self.loops[-1].node if self.loops else None
        return isinstance(node, (p.For, p.While)) and self.static.gated(node)

    def _joined(self, micros: list[int], here: int) -> list[int]:
        """The micro-batches of a loss whose parts (frames, steps of a sequence) loops inside this iteration have computed:
        these are the iteration's, as are the forwards that made them.
        """
        for event in reversed(self.result.events):
            if event.micro < here:
                break
            event.micro = here
        return sorted({min(token, here) for token in micros})

    def note_micro(self, token: int) -> None:
        """Remember where a micro-batch stands, at its first backward."""
        if token not in self.result.micros:
            path = self.where()
            self.drawn[token] = next(
                (k for k, loop in enumerate(self.loops, start=1) if loop.token == token), len(path)
            )
            last = path[-1] if path else (None, 0, 0)
            self.result.micros[token] = Micro(token, last[0], last[1], last[2], path, self.file)

    def settle_micros(self) -> None:
        """Move micro-batches to the loop that drew them, where the loop of their backwards never draws any of its own:
        `for task in tasks: loss(batch[task]).backward()` runs through the parts of one micro-batch.
        """
        micros = self.result.micros
        draws = {m.loop for token, m in micros.items() if self.drawn.get(token, 0) >= len(m.path)}
        for token, micro in micros.items():
            if micro.loop not in draws and (path := micro.path[: self.drawn[token]]):
                loop, serial, iteration = path[-1]
                micros[token] = Micro(token, loop, serial, iteration, path, micro.file)

    # --- changing ------------------------------------------------------------------------------

    def clear(self, optimizers: list[Optimizer] | None, modules: frozenset[int], span: Span, what: str) -> None:
        """`zero_grad` of some optimizers, or of every optimizer over `modules`."""
        span = self.place(span)
        self.event("zero_grad", span, what)
        if optimizers is not None:
            for optimizer in optimizers:
                ledger = self.ledger(optimizer)
                ledger.clear(self._mark("clear", span, ledger, what))
            if len(self.result.ledgers) <= 1:
                held = optimizers[0].modules
                self.base.pending = [e for e in self.base.pending if held and self._beyond(e, held)]
            return
        for key, ledger in self.result.ledgers.items():
            mods = self.optimizers[key].modules
            if self.optimizers[key].engine is not None:
                continue  # DeepSpeed keeps and clears its own gradients
            if not mods or not modules or self.related(mods, modules):
                ledger.clear(self._mark("clear", span, ledger, what))
        if not self.result.ledgers:
            self.result.facts.setdefault("wiped", set()).update(e.span for e in self.base.fresh())
        self.base.clear(self._mark("clear", span, self.base, what))

    def clear_applied(self) -> None:
        """A `zero_grad` of something out of sight: what steps have applied is gone, what they have not may be another's."""
        for ledger in (*self.result.ledgers.values(), self.base):
            ledger.pending = ledger.fresh()

    def _mark(self, kind: str, span: Span, ledger: OptimizerLedger, owner: str, detail: str = "") -> Mark:
        fresh = ledger.fresh()
        return Mark(
            kind,
            span,
            self.tick(),
            self.token(),
            ledger.held(),
            any(e.scaled for e in fresh),
            detail=detail,
            owner=owner,
            where=self.where(),
        )

    def unscale(self, optimizer: Optimizer, scaler: str, span: Span) -> None:
        """`scaler.unscale_(optimizer)`."""
        span = self.place(span)
        ledger = self.ledger(optimizer)
        again = self.unscaled.get((scaler, ledger.name), -1) == self.scale_generation.get(scaler, 0)
        self.unscaled[scaler, ledger.name] = self.scale_generation.get(scaler, 0)
        ledger.unscale(self._mark("unscale", span, ledger, scaler, "again" if again else ""))
        self.event("unscale", span, ledger.name)

    def clip(
        self,
        modules: frozenset[int],
        span: Span,
        what: str,
        optimizer: Optimizer | None = None,
        *,
        scaled_bound: bool = False,
    ) -> None:
        """Gradient clipping over some parameters (unknown when `modules` is empty).

        `scaled_bound`: the bound was multiplied by the loss scale, as the gradients are.
        """
        span = self.place(span)
        self.event("clip", span, what)
        ledgers = list(self.result.ledgers.items()) or [("", self.base)]
        for key, ledger in ledgers:
            owner = self.optimizers.get(key)
            mods = owner.modules if owner is not None else frozenset()
            if optimizer is not None and owner is not optimizer:
                continue
            if mods and modules and not self.related(mods, modules):
                continue
            mark = self._mark("clip", span, ledger, what)
            ledger.marks.append(replace(mark, scaled=False) if scaled_bound else mark)

    def rescale(self, modules: frozenset[int], factor: Coefficient, span: Span) -> None:
        """`p.grad *= factor` over some parameters."""
        if clips(factor, self.guards):
            self.clip(modules, place_of_clip(self, span), "by hand", scaled_bound="get_scale()" in str(factor))
            return
        self.event("rescale", span, str(factor))
        reached = not self.result.ledgers
        for key, ledger in [*self.result.ledgers.items(), ("", self.base)]:
            mods = self.optimizers[key].modules if key else frozenset()
            if not mods or not modules or self.related(mods, modules):
                ledger.rescale(factor)
                reached = reached or bool(key)
        if not reached:  # some optimizer's gradients were scaled, and the code does not show whose
            self.result.facts["manual_grad"] = True

    def copied(self, modules: frozenset[int]) -> None:
        """Gradients were read by other code."""
        for key, ledger in [*self.result.ledgers.items(), ("", self.base)]:
            mods = self.optimizers[key].modules if key else frozenset()
            if not mods or not modules or self.related(mods, modules):
                ledger.copied = True

    # --- stepping ------------------------------------------------------------------------------

    def step(self, optimizer: Optimizer, span: Span, *, scaler: str = "", skipped: bool = False) -> Step:
        """`optimizer.step()` or `scaler.step(optimizer)`."""
        self.burn(5)
        span = self.place(span)
        ledger = self.ledger(optimizer, stepping=True)
        if scaler:
            self.unscaled[scaler, ledger.name] = self.scale_generation.get(scaler, 0)
        if not ledger.pending and not ledger.lost and optimizer.modules and not ledger.steps and self.base.pending:
            # No backward was seen to reach its parameters (adapters, copies): the code does not show who reaches what.
            optimizer.modules = frozenset()
            fresh = self.base.clone(ledger.name)
            for entry in fresh.pending:
                entry.sure = False
            ledger.pending, ledger.window, ledger.lost = fresh.pending, fresh.window, fresh.lost
        guards = [*self.guards]
        for loop in self.loops:
            guards += loop.residual
        step = Step(
            ledger.name,
            span,
            self.tick(),
            [],
            [],
            [],
            [],
            [],
            tuple(guards),
            tuple(f.iteration for f in self.loops),
            unscaled_here=bool(scaler),
            skipped=skipped,
        )
        raw = any(e.scaled for e in ledger.pending)
        ledger.step(step)
        if scaler:
            for entry in step.applied:
                entry.scaled = entry.scaled and any(m.kind == "unscale" for m in step.marks)
            for entry in ledger.pending:
                entry.scaled = False
        self.event("step", span, ledger.name, applied=len(step.micros()), window=len(step.window), raw=raw)
        for loop in self.loops:
            loop.steps = True
        if step.applied or step.window:
            self.steps_taken += 1
        if self.steps_taken >= self.max_steps:
            self._stop()
        return step

    def _stop(self) -> None:
        """End the run: it has shown enough of the loop that it is in."""
        self.result.truncated = True
        if self.loops:
            self.result.facts["enough_of"] = self.loops[0].node
        raise RunOver

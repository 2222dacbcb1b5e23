"""The only writer of run, visit, gate and attempt state.

Functions here take a ``Tx`` first, never commit, and are composed by the engine and by operations inside one
``Store.write``. Transitions come from ``domain.machine`` and are applied as ``UPDATE … WHERE state IN (allowed)``, the
event in the same commit. Rules: design contracts.md, "Rules of the journal".
"""

"""Features: from a frame of contexts to numbers and back, by scikit-learn's scaler and encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import import_module
from typing import Any

import narwhals as nw
import numpy as np

from bough import _checks
from bough._arrays import Floats, Names
from bough._extras import install
from bough._frames import collected, make_frame, position
from bough.model.feature_names import INTERCEPT, distinct_names, shown
from bough.model.likelihood import LARGEST
from bough.tree.name_columns import is_missing

OTHER = "other"
"""What stands for every value of a category that has no feature of its own."""

_REMEMBERED = 10_000  # rows of categories


@dataclass(frozen=True, eq=False, repr=False)
class Features:
    """How the columns of a frame become the numbers of contexts; made by `Features.learn`.

    The numbers are an intercept, which is always 1, the numeric columns, each less its mean and divided by its standard
    deviation, and for each categorical column a feature for each value, 1 where it is that value and else 0, and one
    for every "other" value. Give it to a model, or to `fit_prior`, as `features`: contexts may then be frames, dicts or
    Series of the columns. Files keep it. It takes scikit-learn, which does the arithmetic.

    >>> import bough, polars
    >>> visits = polars.DataFrame({"age": [20, 30, 40, 50], "country": ["fr", "de", "fr", "fr"]})
    >>> features = bough.Features.learn(visits, other_below=2)
    >>> features
    Features(numeric=['age'], categorical=['country'], dim=4)
    >>> features.names
    ('intercept', 'age', 'country=fr', 'country=other')
    >>> features.transform({"age": 35, "country": "it"})
    array([[1., 0., 0., 1.]])
    """

    numeric: tuple[str, ...] = ()
    """The columns of numbers, in order."""
    means: Any = ()
    """Their means."""
    scales: Any = ()
    """Their standard deviations; 1 where a column does not vary."""
    categories: Mapping[str, tuple[str, ...]] | None = None
    """The categorical columns, in order, and the values of each that have a feature of their own."""
    intercept: bool = True
    """Whether the first feature is always 1."""

    def __post_init__(self) -> None:
        numeric = distinct_names(self.numeric, "numeric")
        means, scales = (_checks.floats(getattr(self, name), name) for name in ("means", "scales"))
        if not means.shape == scales.shape == (len(numeric),):
            raise ValueError(f"there are {len(numeric)} numeric columns; give as many means and scales")
        if not ((np.abs(means) < LARGEST) & (scales > 1.0 / LARGEST) & (scales < LARGEST)).all():
            raise ValueError("means must be finite, and scales positive and finite")
        for array in (means, scales):
            array.setflags(write=False)
        categories = _checked_categories(self.categories)
        both = next((name for name in categories if name in numeric), None)
        if both is not None:
            raise ValueError(f"the column {both!r} is numeric and categorical; give it as one of them")
        if not numeric and not categories:
            raise ValueError("there are no columns; name at least one that is numeric or categorical")
        if not isinstance(self.intercept, (bool, np.bool_)):
            raise ValueError(f"intercept is {self.intercept!r:.80}; give True or False")
        checked = (numeric, means, scales, categories, bool(self.intercept))
        for name, value in zip(self.__match_args__, checked, strict=True):
            object.__setattr__(self, name, value)
        self.names  # noqa: B018, which checks that they are distinct

    @classmethod
    def learn(
        cls,
        frame: Any,
        numeric: Sequence[str] | None = None,
        categorical: Sequence[str] | None = None,
        *,
        intercept: bool = True,
        other_below: int = 10,
    ) -> Features:
        """The features of a frame's columns: means and deviations of the numeric ones, values of the categorical ones.

        `frame` is a pandas, polars or pyarrow frame. Where neither `numeric` nor `categorical` is given, all columns
        are taken, numbers and truth values as numeric and text as categorical; otherwise the named ones. A value that
        fewer than `other_below` rows have is "other", as are values that come later, missing ones, and one that is
        called so.

        >>> import bough, pandas
        >>> visits = pandas.DataFrame({"age": [20.0, 40.0], "hour": [9, 21], "visitor": ["u7", "u9"]})
        >>> bough.Features.learn(visits, numeric=["hour", "age"], intercept=False).names
        ('hour', 'age')
        """
        table = _frame(frame)
        least = _checks.whole_number("other_below", other_below, least=1)
        if numeric is None and categorical is None:
            numeric, categorical = _columns_by_type(table)
        numeric = distinct_names(() if numeric is None else numeric, "numeric")
        categorical = distinct_names(() if categorical is None else categorical, "categorical")
        for name in (*numeric, *categorical):
            position(name, table.columns, "the frame")
        if not len(table):
            raise ValueError("the frame has no rows; give at least one")
        preprocessing = _preprocessing()
        means = scales = np.empty(0)
        if numeric:
            numbers = _numbers([table[name] for name in numeric], numeric)
            known = (np.abs(numbers) < LARGEST).any(axis=0)
            if not known.all() or np.isinf(numbers).any():
                raise ValueError("a numeric column has no number, or infinite or huge ones; leave out such rows")
            scaler = preprocessing.StandardScaler().fit(numbers)
            means, scales = scaler.mean_, scaler.scale_
        categories = {}
        for name in categorical:
            encoder = preprocessing.OneHotEncoder(min_frequency=least).fit(_labels([table[name]]))
            rare = encoder.infrequent_categories_[0]
            usual = set(encoder.categories_[0]) - {OTHER, *(() if rare is None else rare)}
            if not usual:
                raise ValueError(
                    f"the column {name!r} has no value with {least} or more rows; leave it out, or give a smaller "
                    "other_below"
                )
            categories[name] = tuple(sorted(usual))
        return cls(numeric, means, scales, categories, intercept)

    def __repr__(self) -> str:
        return (
            f"Features(numeric=[{shown(self.numeric) if self.numeric else ''}], "
            f"categorical=[{shown(self._categories) if self._categories else ''}], dim={len(self.names)})"
        )

    def __reduce__(self) -> Any:
        # What is scikit-learn's is made again, by whichever version there is.
        return Features, (self.numeric, self.means, self.scales, self.categories, self.intercept)

    @property
    def _categories(self) -> Mapping[str, tuple[str, ...]]:
        return self.categories or {}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the features, in order."""
        names = [INTERCEPT] if self.intercept else []
        names += self.numeric
        names += [f"{column}={value}" for column, values in self._categories.items() for value in (*values, OTHER)]
        return distinct_names(names)

    @property
    def feature_names_in_(self) -> Names:
        """The names of the columns that it takes, as scikit-learn has them."""
        return np.array([*self.numeric, *self._categories], dtype=object)

    def get_feature_names_out(self, input_features: Any = None) -> Names:  # noqa: ARG002
        """The names of the features, as scikit-learn has them."""
        return np.array(self.names, dtype=object)

    def transform(self, frame: Any) -> Floats:
        """(n, d) the numbers of a frame of n rows, or of a dict: one context, or columns.

        Other columns do not matter. A missing number stays NaN, and a missing value of a category is "other".

        >>> import bough
        >>> features = bough.Features(["age"], [40.0], [10.0], {"country": ["de", "fr"]})
        >>> features.transform({"country": ["fr", None], "age": [50, 35]})
        array([[ 1. ,  1. ,  0. ,  1. ,  0. ],
               [ 1. , -0.5,  0. ,  0. ,  1. ]])
        """
        columns = self._columns(frame)
        n = len(columns[0])
        if not n:
            return np.empty((0, len(self.names)))
        parts = [np.ones((n, 1))] if self.intercept else []
        if self.numeric:
            parts.append(self._scaler.transform(_numbers(columns[: len(self.numeric)], self.numeric)))
        if self._categories:
            labels = _labels(columns[len(self.numeric) :])
            parts.append(self._encoded_one(tuple(labels[0])) if n == 1 else self._encoder.transform(labels))
        return np.hstack(parts)

    def _columns(self, frame: Any) -> list[Any]:
        """The columns that are taken, all of one length."""
        if isinstance(frame, Mapping):
            table: Any = {name: column if _checks.is_list(column) else [column] for name, column in frame.items()}
            present = list(table)
        else:
            table = _frame(frame)
            present = table.columns
        names = self.feature_names_in_.tolist()
        for name in names:
            position(name, present, "the frame")
        columns = [table[name] for name in names]
        if len(set(map(len, columns))) > 1:
            raise ValueError("the columns are not all of one length; give one value for each row")
        return columns

    def inverse(self, contexts: Any, backend: str | None = None) -> Any:
        """The frame of which `transform` makes these (n, d) numbers; what was no value of its own is "other".

        `backend` is "pandas", "polars" or "pyarrow"; the first of them that is installed where it is None.

        >>> import bough
        >>> features = bough.Features(["age"], [40.0], [10.0], {"country": ["de", "fr"]})
        >>> features.inverse([[1.0, -0.5, 0.0, 0.0, 1.0]], "polars").to_dicts()
        [{'age': 35.0, 'country': 'other'}]
        """
        rows = _checks.floats(contexts, "contexts")
        if rows.ndim != 2 or rows.shape[1] != len(self.names):
            raise ValueError(f"the contexts have shape {rows.shape}; give (n, {len(self.names)}), a row for each")
        columns: dict[str, Any] = {}
        start = int(self.intercept) + len(self.numeric)
        if self.numeric and len(rows):
            numbers = self._scaler.inverse_transform(rows[:, int(self.intercept) : start])
            columns = dict(zip(self.numeric, numbers.T, strict=True))
        for name, values in self._categories.items():
            part = rows[:, start : start + len(values) + 1]
            start += len(values) + 1
            if not (((part == 0.0) | (part == 1.0)).all() and (part.sum(axis=1) == 1.0).all()):
                raise ValueError(
                    f"the features of {name!r} are not all 0 but for one that is 1; give those of contexts"
                )
            columns[name] = np.array([*values, OTHER], dtype=object)[part.argmax(axis=1)].tolist()
        return make_frame({name: columns.get(name, []) for name in self.feature_names_in_}, backend)

    # -- what scikit-learn does ----------------------------------------------------------------

    @cached_property
    def _scaler(self) -> Any:
        scaler = _preprocessing().StandardScaler()
        scaler.mean_, scaler.scale_, scaler.var_ = self.means, self.scales, np.square(self.scales)
        scaler.n_features_in_ = len(self.numeric)
        return scaler

    @cached_property
    def _encoder(self) -> Any:
        """An encoder that knows the values of each column, and that "other" is never seen: what is rare goes there."""
        known = [[*values, OTHER] for values in self._categories.values()]
        encoder = _preprocessing().OneHotEncoder(
            categories=known, min_frequency=1, handle_unknown="infrequent_if_exist", sparse_output=False
        )
        n = max(map(len, known)) - 1
        seen = [[values[i % (len(values) - 1)] for values in known] for i in range(n)]
        return encoder.fit(np.array(seen, dtype=object))

    @cached_property
    def _encoded_one(self) -> Any:
        """What the encoder makes of one row, remembered: it takes longer than a decision, and few rows differ."""

        @lru_cache(maxsize=_REMEMBERED)
        def encoded(labels: tuple[str, ...]) -> Any:
            return self._encoder.transform(np.array([labels], dtype=object))

        return encoded

    # -- files ---------------------------------------------------------------------------------

    def contents(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        return {
            "intercept": self.intercept,
            "numeric": list(self.numeric),
            "means": self.means.tolist(),
            "scales": self.scales.tolist(),
            "categories": {name: list(values) for name, values in self._categories.items()},
        }

    @classmethod
    def restored(cls, given: Mapping[str, Any]) -> Features:
        """What `contents` gave, checked like a user's own."""
        return cls(*(given[name] for name in cls.__match_args__))


def _preprocessing() -> Any:
    try:
        return import_module("sklearn.preprocessing")
    except ImportError:
        raise ValueError(f"bough.Features takes scikit-learn; {install('sklearn')}") from None


def _frame(frame: Any) -> nw.DataFrame[Any]:
    try:
        return collected(nw.from_native(frame))
    except (TypeError, nw.exceptions.NarwhalsError):
        raise ValueError(f"frame is a {type(frame).__name__}; give a pandas, polars or pyarrow frame") from None


def _columns_by_type(table: nw.DataFrame[Any]) -> tuple[list[str], list[str]]:
    numeric, categorical = [], []
    for name, kind in table.collect_schema().items():
        if kind.is_numeric() or kind == nw.Boolean:
            numeric.append(name)
        elif kind in (nw.String, nw.Categorical, nw.Enum):
            categorical.append(name)
        else:
            raise ValueError(
                f"the column {name!r} is of type {kind}; say with numeric= and categorical= which columns to take"
            )
    return numeric, categorical


def _checked_categories(categories: Any) -> dict[str, tuple[str, ...]]:
    if categories is None:
        return {}
    if not isinstance(categories, Mapping):
        raise ValueError(f"categories is {categories!r:.80}; give a mapping from columns to their values")
    distinct_names(list(categories), "categorical")
    checked = {}
    for name, values in categories.items():
        if isinstance(values, Mapping) or not _checks.is_list(values):
            raise ValueError(f"the values of {name!r} are {values!r:.80}; give a list of them")
        listed = list(values)
        sound = all(isinstance(value, str) and value != OTHER for value in listed)
        if not listed or not sound or len(set(listed)) < len(listed):
            raise ValueError(f'the values of {name!r} are {shown(listed)}; give distinct texts, and not "{OTHER}"')
        checked[str(name)] = tuple(map(str, listed))
    return checked


def _numbers(columns: Sequence[Any], names: Sequence[str]) -> Floats:
    """(n, p) columns of numbers."""
    numbers = []
    for name, column in zip(names, columns, strict=True):
        given = column.to_numpy() if isinstance(column, nw.Series) else column
        numbers.append(_checks.floats(given, f"column {name!r}"))
        if numbers[-1].ndim != 1:
            raise ValueError(f"the column {name!r} has shape {numbers[-1].shape}; give one number for each row")
    return np.column_stack(numbers)


def _labels(columns: Sequence[Any]) -> Names:
    """(n, p) columns of values as text."""
    labels = np.empty((len(columns[0]), len(columns)), dtype=object)
    for j, column in enumerate(columns):
        values = column.to_list() if hasattr(column, "to_list") else column
        labels[:, j] = [_label(value) for value in values]
    return labels


def _label(value: Any) -> str:
    """A value of a category as text; integers that a frame made floats, because others are missing, as they were."""
    if isinstance(value, str):
        return value
    if is_missing(value):
        return OTHER
    is_integer = isinstance(value, (float, np.floating)) and float(value).is_integer()
    return str(int(value)) if is_integer else str(value)

"""The command: every option documented, errors on one line with exit status 2, the same numbers from the same seed."""

import shlex
import subprocess
import sys

import numpy as np
import pytest

import bough
from bough import cli
from bough._extras import install
from bough.cli import inputs, layout, parser
from places import ROOT

DOCS = ROOT / "docs"
TINY = ["--runs", "3", "--rounds", "4"]


def run(*arguments, cwd=None):
    return subprocess.run(
        [sys.executable, "-c", "import sys; from bough.cli import main; sys.exit(main())", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        check=False,
    )


def test_the_reference_in_the_docs_is_the_help_of_the_command():
    assert (DOCS / "reference" / "cli.md").read_text() == parser.reference()


COMMANDS = layout.commands_of(parser.make_parser())


def test_the_commands_are_these():
    assert list(COMMANDS) == [
        "reproduce",
        "simulate",
        "bound",
        "fit",
        "learn",
        "show",
        "dashboard",
        "decide",
        "batch",
        "best",
        "evaluate",
        "adopt",
        "serve",
        "key create",
        "key list",
        "key revoke",
        "export",
        "rebuild",
        "prune",
        "data",
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples_and_every_option_a_text(command, capsys):
    with pytest.raises(SystemExit, match="0"):
        cli.main([*command.split(), "--help"])
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: bough {command}")
    assert COMMANDS[command].examples
    for example in COMMANDS[command].examples:
        assert f"\n  {example}\n" in shown
    assert all(action.help for action in COMMANDS[command]._actions)


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_examples_are_commands_that_the_parser_takes(command):
    whole = parser.make_parser()
    for example in whole.examples if command is None else COMMANDS[command].examples:
        words = shlex.split(example.split(" | ")[-1])
        assert words[0] == "bough"
        assert command is None or words[1:].index(command.split()[-1]) == len(command.split()) - 1
        given = whole.parse_args(words[1:])
        assert callable(given.run)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_json_and_spells_the_noise_alike(command):
    options = {text for action in COMMANDS[command]._actions for text in action.option_strings}
    assert "--json" in options
    assert {text for text in options if "noise" in text} <= {"--noise-variance"}


def test_the_noise_of_a_fit_goes_by_its_old_name_as_well(tmp_path):
    write_log(tmp_path)
    for word in ("--noise-variance", "--noise"):
        done = run("fit", "log.csv", "--tree", "tree.txt", *COLUMNS, "--skip-bad", word, "0.5", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert bough.GaussianModel.load(tmp_path / "model.bough").noise_variance == 0.5


@pytest.mark.parametrize("command", ["reproduce", "simulate"])
def test_help_lists_experiments_and_policies_without_loading_them(command):
    code = f"""
import sys
from bough import cli
try:
    cli.main(["{command}", "--help"])
except SystemExit:
    print([name for name in ("numba", "matplotlib", "bough.policies.thompson", "bough.experiments.experiment")
           if name in sys.modules])
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert ("height-constant" if command == "reproduce" else "BayesUCB") in shown
    assert shown.splitlines()[-1] == "[]"


def test_the_version_is_printed():
    assert run("--version").stdout.strip() == f"bough {bough.__version__}"


def test_reproduce_writes_everything_and_says_what_held(tmp_path):
    done = run("reproduce", "branching", "policies", *TINY, "--out", tmp_path / "r")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    written = {path.name for path in (tmp_path / "r").iterdir()}
    names = {f"{name}.{kind}" for name in ("branching", "policies") for kind in ("csv", "json", "png", "svg")}
    assert written == names | {"cells", "report.md", "report.html"}
    assert "HierTS has lower regret than both baselines" in done.stdout
    before = (tmp_path / "r" / "branching.csv").read_bytes()
    assert run("reproduce", "branching", *TINY, "--out", tmp_path / "again", "--jobs", "1").returncode == 0
    assert (tmp_path / "again" / "branching.csv").read_bytes() == before


def test_simulate_prints_a_table_and_writes_files(tmp_path):
    (tmp_path / "tree.txt").write_text("home/kitchen/kettle\nhome/kitchen/toaster\n\ntoys/kite\n")
    options = ["--tree", tmp_path / "tree.txt", "--by-depth", "1,1,0.5,0.2", "--policies", "HierTS, Greedy", *TINY]
    done = run("simulate", *options, "--csv", tmp_path / "a.csv", "--plot", tmp_path / "a.png")
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["policy", "HierTS", "Greedy"]
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 1 + 2 * 4
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_bound_says_which_bounds_say_nothing(capsys):
    assert cli.main(["bound", "--branching", "3", "--height", "2"]) == 0
    assert capsys.readouterr().out.endswith(
        "above uniform, the regret of playing at random, a bound says nothing: HierTS, TS\n"
    )
    assert cli.main(["bound", "--branching", "3", "--height", "2", "--rounds", "9000"]) == 0
    assert "says nothing" not in capsys.readouterr().out


def test_bound_prints_the_parts_for_each_policy():
    done = run("bound", "--branching", "3", "--height", "2", "--delta", "best", "--constant", "telescoped")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[0] for line in lines[1:5]] == ["HierTS", "FlatTS", "TS", "uniform"]
    expected = bough.theory.regret_bound(bough.problems.increasing(3, 2), 500, "best", "telescoped")
    assert float(lines[1][1]) == pytest.approx(expected.total, abs=0.05)


def write_log(folder):
    rng = np.random.default_rng(0)
    paths = [f"{i}/{j}" for i in range(6) for j in range(5)]
    (folder / "tree.txt").write_text("\n".join(paths))
    lines = [f"{path},{1000 + n},{rng.normal(n // 5, 1.0)}" for n, path in enumerate(paths) for _ in range(4)]
    (folder / "log.csv").write_text("\n".join(["product,sku,sales", *lines, "0/0,1000,"]))
    table = [f"{path.split('/')[0]},{1000 + n}" for n, path in enumerate(paths)]
    (folder / "products.csv").write_text("\n".join(["group,sku", *table]))


def test_fit_prints_the_table_and_writes_a_model_that_simulate_and_the_library_read(tmp_path):
    write_log(tmp_path)
    columns = ["--action", "product", "--reward", "sales"]
    done = run("fit", "log.csv", "--tree", "tree.txt", *columns, "--skip-bad", "--out", "m.bough", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == "left out: 1 row (bad number)"
    assert [line.split()[0] for line in lines[2:7]] == ["mean", "variance", "variance", "variance", "noise"]
    assert lines[-2].endswith("converged")
    model = bough.GaussianModel.load(tmp_path / "m.bough")
    assert model.tree.n_actions == 30
    assert f"{model.noise_variance:.4g}" in lines[6]
    simulated = run("simulate", "--model", "m.bough", *TINY, cwd=tmp_path)
    assert simulated.returncode == 0, simulated.stderr
    assert run("bound", "--model", "m.bough", cwd=tmp_path).returncode == 0
    by_table = ["--tree", "products.csv", "--levels", "group,sku", "--action", "sku", "--reward", "sales"]
    again = run("fit", "log.csv", *by_table, "--skip-bad", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert [line.split()[-2:] for line in again.stdout.splitlines()[3:-1]] == [
        line.split()[-2:] for line in lines[3:-1]
    ]
    assert all(f"variance at {level} " in again.stdout for level in ("root", "group", "sku"))
    assert bough.GaussianModel.load(tmp_path / "model.bough").tree.levels == ("root", "group", "sku")
    assert bough.GaussianModel.load(tmp_path / "model.bough").tree.actions[0] == 1000


COLUMNS = ["--action", "product", "--reward", "sales"]
BAD_FITS = {
    "a bad row": (["log.csv", "--tree", "tree.txt", *COLUMNS], "1 of 121 rows cannot be used"),
    "no log": (
        ["nowhere.csv", "--tree", "tree.txt", *COLUMNS],
        "there is no file 'nowhere.csv'; give one that is there",
    ),
    "no tree": (["log.csv", *COLUMNS], "no tree was given; give --tree FILE"),
    "no tree file": (["log.csv", "--tree", "nowhere.txt", *COLUMNS], "nowhere.txt"),
    "no column": (["log.csv", "--tree", "tree.txt", "--action", "item", "--reward", "sales"], "no column 'item'"),
    "no level": (["log.csv", "--tree", "products.csv", "--levels", "kind,sku", *COLUMNS], "no column 'kind'"),
    "no levels": (["log.csv", "--tree", "products.csv", "--levels", ",", *COLUMNS], "--levels is ','"),
    "bad noise": (
        ["log.csv", "--tree", "tree.txt", *COLUMNS, "--skip-bad", "--noise-variance", "x"],
        '--noise-variance has \'x\'; give a number, "learn" or "per action"',
    ),
    "bad root": (["log.csv", "--tree", "tree.txt", *COLUMNS, "--root", "x"], "--root has 'x'"),
    "bad penalty": (["log.csv", "--tree", "tree.txt", *COLUMNS, "--skip-bad", "--penalty", "-1"], "penalty is -1.0"),
    "no folder": (["log.csv", "--tree", "tree.txt", *COLUMNS, "--out", "a/b"], "--out a/b cannot be written"),
    "a table as it is": (
        ["log.csv", "--tree", "products.csv", *COLUMNS],
        "name its columns, coarsest first, with --levels",
    ),
    "one file for both": (
        ["log.csv", "--tree", "tree.txt", *COLUMNS, "--agent", "./model.bough"],
        "--out and --agent are both model.bough; give each a file of its own",
    ),
    "no context": (["log.csv", "--tree", "tree.txt", *COLUMNS, "--structure", "full"], "go with --context"),
}


@pytest.mark.parametrize("what", BAD_FITS)
def test_a_fit_that_cannot_be_is_one_line_with_exit_status_two(what, tmp_path, monkeypatch, capsys):
    write_log(tmp_path)
    monkeypatch.chdir(tmp_path)
    arguments, text = BAD_FITS[what]
    assert cli.main(["fit", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.strip().splitlines()) == 1
    assert text in shown.err
    assert not (tmp_path / "model.bough").exists()


def test_a_fit_says_which_files_it_has_replaced(tmp_path, monkeypatch, capsys):
    write_log(tmp_path)
    monkeypatch.chdir(tmp_path)
    fit = ["fit", "log.csv", "--tree", "tree.txt", *COLUMNS, "--skip-bad"]
    assert cli.main(fit) == 0
    assert capsys.readouterr().out.endswith("\nmodel: model.bough\n")
    assert cli.main([*fit, "--agent", "agent.bough"]) == 0
    assert capsys.readouterr().out.endswith("\nmodel: model.bough (replaced)\nagent: agent.bough\n")


def test_a_model_with_contexts_is_not_for_the_command(tmp_path, capsys):
    bough.GaussianModel(bough.Tree.balanced(2, 1), [0.0, 0.0]).save(tmp_path / "m")
    assert cli.main(["simulate", "--model", str(tmp_path / "m")]) == 2
    assert "takes contexts of length 2" in capsys.readouterr().err
    assert cli.main(["simulate", "--model", str(tmp_path / "m"), "--branching", "2"]) == 2
    assert "leave out --branching" in capsys.readouterr().err
    assert cli.main(["bound", "--model", str(tmp_path / "m"), "--noise-variance", "3"]) == 2
    assert "leave out --noise-variance" in capsys.readouterr().err


def test_contexts_with_an_intercept_and_several_logs(tmp_path):
    write_log(tmp_path)
    rest = ["--tree", "tree.txt", *COLUMNS, "--context", "sku", "--intercept", "--structure", "scaled", "--skip-bad"]
    done = run("fit", "log.csv", "log.csv", *rest, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "left out: 2 rows" in done.stdout
    assert "mean of intercept" in done.stdout
    assert "mean of sku" in done.stdout


def test_a_log_of_which_most_or_all_would_be_left_out_is_not_fitted(tmp_path, monkeypatch, capsys):
    write_log(tmp_path)
    monkeypatch.chdir(tmp_path)
    lines = (tmp_path / "log.csv").read_text().splitlines()
    few = [line if n % 3 == 0 else f"gone{line}" for n, line in enumerate(lines)]
    (tmp_path / "log.csv").write_text("\n".join(few))
    rest = ["--tree", "tree.txt", *COLUMNS]
    assert cli.main(["fit", "log.csv", *rest, "--skip-bad"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "81 of 121 rows cannot be used" in shown.err
    assert "--skip-most" in shown.err
    assert not (tmp_path / "model.bough").exists()
    assert cli.main(["fit", "log.csv", *rest, "--skip-most"]) == 0
    assert "left out: 80 rows (unknown action)" in capsys.readouterr().out
    (tmp_path / "log.csv").write_text("\n".join([lines[0], *(f"gone{line}" for line in lines[1:])]))
    for log in ("log.csv", "empty.csv"):
        (tmp_path / "empty.csv").write_text(lines[0])
        (tmp_path / "model.bough").unlink(missing_ok=True)
        assert cli.main(["fit", log, *rest, "--skip-most"]) == 2
        assert "the log has no row that can be used" in capsys.readouterr().err
        assert not (tmp_path / "model.bough").exists()


BAD = {
    "unknown experiment": (["reproduce", "branchin"], "unknown experiment 'branchin'; there are branching,"),
    "too few runs": (["reproduce", "--runs", "1"], "--runs is 1; give at least 2"),
    "no rounds": (["reproduce", "--rounds", "0"], "--rounds is 0; give at least 1"),
    "negative seed": (["reproduce", "--seed", "-1"], "--seed is -1"),
    "no jobs": (["reproduce", "--jobs", "0"], "--jobs is 0"),
    "unwritable folder": (["reproduce", "branching", *TINY, "--out", "file/below"], "file"),
    "folder is a file": (["reproduce", "branching", *TINY, "--out", "file"], "give another folder with --out"),
    "huge tree": (["bound", "--branching", "1", "--height", "1100"], "too large to compute with"),
    "no such folder": (["simulate", "--branching", "2", "--height", "1", "--csv", "a/b.csv"], "--csv a/b.csv cannot"),
    "no tree": (["simulate", *TINY], "give --branching and --height, --tree FILE, or --model FILE"),
    "no height": (["simulate", "--branching", "3", *TINY], "--height is missing"),
    "no height in bound": (["bound", "--branching", "3"], "--height is missing"),
    "no branching": (["bound", "--height", "3"], "--branching is missing"),
    "levels without a table": (["bound", "--levels", "a,b", "--branching", "2"], "--levels names columns of a table"),
    "a picture of no kind": (
        ["simulate", "--branching", "2", "--height", "1", "--plot", "a.xyz"],
        "--plot is a.xyz; give a file whose name ends in .png, .svg or .pdf",
    ),
    "a picture without an ending": (["simulate", "--branching", "2", "--height", "1", "--plot", "a"], "--plot is a;"),
    "no rounds of a bound": (["bound", "--branching", "2", "--height", "1", "--rounds", "0"], "rounds is 0"),
    "no archive": (["data", "cifar100", "--archive", "nowhere.gz", "--network", "pixels"], "nowhere.gz"),
    "no folder for features": (["data", "cifar100", "--out", "a/b.npz"], "--out a/b.npz cannot be written"),
    "two trees": (["simulate", "--tree", "file", "--branching", "2"], "--tree goes without"),
    "missing tree file": (["simulate", "--tree", "nowhere.txt"], "nowhere.txt"),
    "bad tree file": (["simulate", "--tree", "file"], "path 'a//b' has an empty component"),
    "unknown policy": (["simulate", "--branching", "2", "--height", "2", "--policies", "UCB"], "unknown policy 'UCB'"),
    "bad variances": (["bound", "--branching", "2", "--height", "1", "--by-depth", "1,x"], "--by-depth has 'x'"),
    "wrong variances": (
        ["bound", "--branching", "2", "--height", "1", "--by-depth", "1"],
        "by_depth has 1 covariances",
    ),
    "bad delta": (["bound", "--branching", "2", "--height", "1", "--delta", "7"], "delta is 7.0"),
    "bad constant": (["bound", "--branching", "2", "--height", "1", "--constant", "3"], "constant is '3'"),
    "bad noise": (["bound", "--branching", "2", "--height", "1", "--noise-variance", "0"], "noise_variance is 0.0"),
    "negative branching": (["bound", "--branching", "-2", "--height", "1"], "branching is -2"),
}


@pytest.mark.parametrize("what", BAD)
def test_an_error_is_one_line_with_exit_status_two(what, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("a//b\n")
    monkeypatch.chdir(tmp_path)
    arguments, text = BAD[what]
    assert cli.main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.strip().splitlines()) == 1
    assert text in shown.err


def test_a_damaged_earlier_result_is_one_line_and_is_left_alone(tmp_path, capsys):
    out = ["--out", str(tmp_path)]
    assert cli.main(["reproduce", "height-constant", *TINY, *out]) == 0
    path = tmp_path / "cells" / "height-constant-b2-h3-n4-r3-s0.bough"
    path.write_bytes(b"nonsense")
    capsys.readouterr()
    assert cli.main(["reproduce", "height-constant", *TINY, *out]) == 2
    assert "delete it and run again" in capsys.readouterr().err
    assert path.read_bytes() == b"nonsense"


WRONG_WORDS = {
    "an unknown command": (["dance"], "there is no command 'dance', but reproduce, simulate,"),
    "a command misspelled": (["decied"], "there is no command 'decied' (did you mean decide?); see bough --help"),
    "a part misspelled": (["key", "creat"], "there is no command 'creat' (did you mean create?); see bough key --help"),
    "an option misspelled, and so missing": (
        ["fit", "log.csv", "--action", "sku", "--rewad=sales"],
        "there is no option --rewad (did you mean --reward?); see bough fit --help",
    ),
    "one dash": (
        ["decide", "a.bough", "-k", "5"],
        "there is no option -k (did you mean --k?); see bough decide --help",
    ),
    "a word too many": (["show", "a", "b"], "unrecognized arguments: b; see bough show --help"),
    "an option of no command": (["--verison"], "there is no option --verison (did you mean --version?); see bough --h"),
    "no command": ([], "give a command: reproduce, simulate, "),
    "no command about keys": (["key"], "bough: give a command: create, list, revoke; see bough key --help"),
    "no number": (["reproduce", "--runs", "many"], "--runs: invalid int value: 'many'; see bough reproduce --help"),
    "an unknown option": (["simulate", "--zzz", "2"], "there is no option --zzz; see bough simulate --help"),
    "no value": (["bound", "--height"], "--height: expected one argument"),
    "an unknown word": (["fit", "log.csv", "--by", "size"], "--by: invalid choice: 'size'"),
    "nothing required": (["fit", "log.csv"], "the following arguments are required: --action, --reward"),
    "no agent": (["decide"], "required: AGENT; see bough decide --help"),
    "no file": (["show"], "required: FILE; see bough show --help"),
    "no dataset": (["data", "mnist"], "invalid choice: 'mnist'"),
    "no agent to adopt": (["adopt"], "required: AGENT; see bough adopt --help"),
}


@pytest.mark.parametrize("what", WRONG_WORDS)
def test_wrong_words_are_one_line_that_points_to_the_help_with_exit_status_two(what, capsys):
    arguments, text = WRONG_WORDS[what]
    with pytest.raises(SystemExit) as end:
        cli.main(arguments)
    shown = capsys.readouterr()
    assert end.value.code == 2
    assert shown.out == ""
    assert len(shown.err.strip().splitlines()) == 1
    assert text in shown.err
    assert "--help" in shown.err


def test_a_picture_without_matplotlib_is_refused_before_the_work(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(inputs, "find_spec", lambda name: None)
    monkeypatch.setattr(bough, "simulate", None, raising=False)  # running anything would fail
    assert cli.main(["simulate", "--branching", "2", "--height", "1", "--plot", "a.png"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == f"bough: --plot draws with matplotlib, which is not installed; {install('plot')}\n"
    assert list(tmp_path.iterdir()) == []


def test_a_missing_extra_is_named_before_anything_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "markdown_it", None)
    for name in ("report", "reproduction"):
        monkeypatch.delitem(sys.modules, f"bough.experiments.{name}", raising=False)
        monkeypatch.delattr(f"bough.experiments.{name}", raising=False)
    assert cli.main(["reproduce", "branching", *TINY, "--out", str(tmp_path / "r")]) == 2
    assert "pip install '.[reproduce]'" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


def test_brands_and_stores_from_the_shell(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "products.csv").write_text("department,sku,brand\nhome,kettle,Acme\nhome,toaster,\ngarden,spade,Acme\n")
    rows = [("kettle", 3, 1), ("toaster", 1, 2), ("spade", 2, 1), ("kettle", 4, 2), ("toaster", 0, 1), ("spade", 3, 2)]
    (tmp_path / "log.csv").write_text(
        "sku,sales,store\n" + "".join(f"{a},{y + i % 3},{s}\n" for i, (a, y, s) in enumerate(rows * 5))
    )
    tree = ["--tree", "products.csv", "--levels", "department,sku"]
    fit = ["fit", "log.csv", *tree, "--action", "sku", "--reward", "sales"]
    agent = ["--factor", "brand", "--decision-factor", "store", "--agent", "a.bough", "--seed", "0"]
    assert cli.main([*fit, *agent]) == 0
    out = capsys.readouterr().out
    assert "variance of brand" in out
    assert "variance of store" in out
    assert cli.main(["show", "a.bough"]) == 0
    assert "factor brand" in capsys.readouterr().out
    assert cli.main(["decide", "a.bough", "--k", "2"]) == 0
    capsys.readouterr()
    (tmp_path / "products.csv").write_text(
        "department,sku,brand\nhome,kettle,Acme\nhome,mug,Newco\ngarden,spade,Acme\n"
    )
    assert cli.main(["adopt", "a.bough", *tree, "--factor", "brand", "--out", "b.bough"]) == 0
    assert "added 1: 'mug'" in capsys.readouterr().out
    assert bough.HierTS.load("b.bough").posterior.model.factors["brand"].levels == ("Acme", "Newco")
    for more, message in (
        (["--factor", "colour"], "products.csv has no column 'colour'"),
        (["--factor", "department"], "--factor is 'department', a level of the tree already"),
        (["--decision-factor", "shop"], "log.csv has no column 'shop'"),
        (["--decision-factor", "sku"], "--decision-factor is 'sku', the column of the actions"),
        (["--decision-factor", "sales"], "--decision-factor is 'sales', the column of the rewards"),
        (["--factor", "brand", "--decision-factor", "brand"], "both name 'brand'"),
    ):
        assert cli.main([*fit, *more]) == 2
        assert message in capsys.readouterr().err
    paths = ["fit", "log.csv", "--tree", "products.csv", "--factor", "brand", "--action", "sku", "--reward", "sales"]
    assert cli.main(paths) == 2

"""test_gpu_report.py SOURCES: what tools/gpu_report.py reads out of machine code, and what it calls worse."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(sys.argv.pop(1), "tools"))
import gpu_report as report  # noqa: E402

TILE = "#define GPU_K 8\n#define GPU_ITEM_M 4\n#define GPU_ITEM_N 4\n"


def listing(*lines):
    """"label:", "fma", "other", "free" (which takes no slot) or "-> label"."""
    code = report.Listing()
    for line in lines:
        if line.endswith(":"):
            code.label(line[:-1])
        else:
            code.add(line[3:] if line.startswith("->") else None, line != "free", line == "fma")
    return code


def page(spill="0", share="50 %, 60 %, 70 %", kernel="20, 16"):
    return report.cells_of(report.table(["target", "that spill", "share, loop over tiles"], [["sm_86", spill, share]]) + "\n" +
                           report.table(["kernel", "sm_86"], [["`copy`", kernel]]))


class Shares(unittest.TestCase):
    def test_no_loop(self):
        self.assertEqual(listing("fma", "fma", "other").shares(""), (None, None))
        self.assertEqual(listing("a:", "other", "-> a").shares(""), (None, None))

    def test_innermost_loop(self):
        # The outer loop has two more instructions; a jump forward makes no loop.
        code = listing("outer:", "other", "inner:", "fma", "free", "fma", "-> on", "on:", "-> inner", "-> outer")
        self.assertEqual(code.shares("")[0], 2 / 4)
        self.assertEqual(code.shares("", 2)[0], 1 / 4)

    def test_loop_over_tiles(self):
        # 8 x 4 x 4 products a tile are 32 turns of four, of 6 slots each; 3 more are around them.
        code = listing("outer:", "other", "other", "inner:", "fma", "fma", "fma", "fma", "other", "-> inner", "-> outer")
        inner, tile = code.shares(TILE)
        self.assertEqual(inner, 4 / 6)
        self.assertAlmostEqual(tile, 128 / (32 * 6 + 3))

    def test_unrolled_tile(self):
        code = listing("a:", *["fma"] * 128, "other", "-> a")
        self.assertEqual(code.shares(TILE), (128 / 130, 128 / 130))

    def test_two_products_in_an_instruction(self):
        def products(line):
            return sum(2 if packed else 1 for packed in report.AMD_PRODUCTS.findall(line))
        self.assertEqual(products("v_fmac_f32_e32 v1, v2, v3"), 1)
        self.assertEqual(products("v_pk_fma_f32 v[0:1], v[2:3]"), 2)
        self.assertEqual(products("v_dual_fmac_f32 v1, v2, v3 :: v_dual_fmac_f32 v4, v5, v6"), 2)
        self.assertEqual(products("v_add_f32_e32 v1, v2, v3"), 0)


class Time(unittest.TestCase):
    def test_longer_of_both(self):
        # 2 x 10 ms of arithmetic, 30 ms of memory, and 10 launches of 1 ms.
        document = {"problems": [{"count": 2, "gflop": 1.0, "gbyte": 0.01}, {"count": 1, "gflop": 0.1, "gbyte": 3.0}],
                    "kernels": [{"launches": 7}, {"launches": 3}]}
        seconds, arithmetic = report.step_of(document, 100, 100, 1e-3)
        self.assertAlmostEqual(seconds, 0.06)
        self.assertAlmostEqual(arithmetic, 0.02 / 0.06)


class Worse(unittest.TestCase):
    def test_same_is_not(self):
        self.assertEqual(list(report.compare(page(), page())), [])
        self.assertEqual(list(report.compare(page(spill="2, to 64 bytes"), page())), [])
        self.assertEqual(list(report.compare(page(), page(share="50 %, 61 %, 70 %"))), [])

    def test_spills(self):
        self.assertIn("108 bytes spill, expected 0", "".join(report.compare(page(), page(spill="1, to 108 bytes"))))
        self.assertIn("`copy`, sm_86: 8 bytes", "".join(report.compare(page(), page(kernel="20, 16, **8 spilled**"))))
        self.assertIn("expected none", "".join(report.compare({}, page(kernel="20, 16, **8 spilled**"))))

    def test_share(self):
        self.assertIn("expected 50 %, 60 %, 70 %", "".join(report.compare(page(), page(share="50 %, 55 %, 70 %"))))

    def test_what_does_not_compile(self):
        failed = report.cells_of(report.table(["kernel", "target", "why"], [["`copy`", "sm_86", "clang: error"]]))
        self.assertIn("`copy` does not compile for sm_86: clang: error", "".join(report.compare(page(), failed)))


unittest.main()

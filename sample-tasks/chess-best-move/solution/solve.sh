#!/bin/bash
set -e
python3 > /app/answer.txt <<'PYTHON'
import struct
import sys
import zlib

# Of the picture: sizes in pixels, the pieces' colors in the palette, and how many pixels each kind of piece covers.
SQUARE, MARGIN, WHITE, BLACK = 60, 24, 3, 4
KINDS = {1062: "p", 1088: "b", 1308: "n", 1354: "r", 1498: "k", 1824: "q"}

STRAIGHT = [(1, 0), (-1, 0), (0, 1), (0, -1)]
DIAGONAL = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
JUMPS = [(x, y) for x in (-2, -1, 1, 2) for y in (-2, -1, 1, 2) if abs(x) != abs(y)]
STEPS = {"r": STRAIGHT, "b": DIAGONAL, "q": STRAIGHT + DIAGONAL, "k": STRAIGHT + DIAGONAL, "n": JUMPS}


def read_rows(path):
    """Returns the rows of a PNG with one byte for each pixel and without filters."""
    with open(path, "rb") as file:
        data = file.read()
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        if kind == b"IHDR":
            width, height, depth, color = struct.unpack_from(">IIBB", data, at + 8)
        if kind == b"IDAT":
            packed += data[at + 8 : at + 8 + size]
        at += size + 12
    pixels = zlib.decompress(packed)
    rows = [pixels[y * (width + 1) : (y + 1) * (width + 1)] for y in range(height)]
    assert (depth, color) == (8, 3) and not any(row[0] for row in rows)
    return [row[1:] for row in rows]


def read_board(rows):
    """Returns the pieces by square, (0, 0) for a1. White's are in capital letters."""
    board = {}
    for file in range(8):
        for rank in range(8):
            left, top = MARGIN + file * SQUARE, MARGIN + (7 - rank) * SQUARE
            square = b"".join(row[left : left + SQUARE] for row in rows[top : top + SQUARE])
            white, black = square.count(WHITE), square.count(BLACK)
            if white + black:
                kind = KINDS[white + black]
                board[file, rank] = kind.upper() if white > black else kind
    return board


def moves_by_pattern(board, white):
    """Yields the moves of a side, also those that leave its king in check."""
    for (file, rank), piece in list(board.items()):
        if piece.isupper() != white:
            continue
        if piece in "Pp":
            ahead = 1 if white else -1
            for distance in (1, 2) if rank == (1 if white else 6) else (1,):
                if (file, rank + ahead * distance) in board:
                    break
                yield (file, rank), (file, rank + ahead * distance)
            for side in (file - 1, file + 1):
                if board.get((side, rank + ahead), piece).isupper() != white:
                    yield (file, rank), (side, rank + ahead)
            continue
        for x, y in STEPS[piece.lower()]:
            for distance in range(1, 2 if piece in "KkNn" else 8):
                to = file + x * distance, rank + y * distance
                if not (0 <= to[0] < 8 and 0 <= to[1] < 8):
                    break
                if to not in board or board[to].isupper() != white:
                    yield (file, rank), to
                if to in board:
                    break


def is_check(board, white):
    king = "K" if white else "k"
    return any(board.get(to) == king for _, to in moves_by_pattern(board, not white))


def after(board, move):
    changed = dict(board)
    changed[move[1]] = changed.pop(move[0])
    return changed


def positions(board, white):
    """Yields the position after each move of a side. Nobody can castle, capture en passant or promote within two moves."""
    for move in moves_by_pattern(board, white):
        moved = after(board, move)
        if not is_check(moved, white):
            yield move, moved


def is_checkmate(board, white):
    return is_check(board, white) and not any(positions(board, white))


def can_checkmate(board):
    return any(is_checkmate(moved, True) for _, moved in positions(board, False))


def forces_checkmate(board):
    answers = [moved for _, moved in positions(board, True)]
    return all(map(can_checkmate, answers)) if answers else is_check(board, True)


board = read_board(read_rows("/app/board.png"))
best = [move for move, moved in positions(board, False) if forces_checkmate(moved)]
if len(best) != 1:
    sys.exit(f"{len(best)} moves force checkmate")
print("".join("abcdefgh"[file] + str(rank + 1) for file, rank in best[0]))
PYTHON

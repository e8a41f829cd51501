/* SPDX-License-Identifier: MIT */
/* MD5 as in RFC 1321; libcurl does not export its own.  The sum shows the server whether the
 * contents arrived whole; it does not protect them from an attacker. */
#include <config.h>

#include <stdint.h>
#include <string.h>

#include "locksmith/s3/md5.h"

enum { BLOCK = 64, LENGTH_AT = 56, DIGEST = 16 };

/* floor(2^32 * |sin(i + 1)|) */
static const uint32_t sines[BLOCK] = {0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf,
    0x4787c62a, 0xa8304613, 0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122,
    0xfd987193, 0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d,
    0x02441453, 0xd8a1e681, 0xe7d3fbc8, 0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905,
    0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44,
    0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039,
    0xe6db99e5, 0x1fa27cf8, 0xc4ac5665, 0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3,
    0x8f0ccc92, 0xffeff47d, 0x85845dd1, 0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82,
    0xbd3af235, 0x2ad7d2bb, 0xeb86d391};

/* Each round of 16 steps uses one row: its steps rotate by these four numbers in turn. */
static const unsigned char rotations[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23},
    {6, 10, 15, 21}};

static uint32_t rotate(uint32_t value, unsigned int bits)
{
	return value << bits | value >> (32 - bits);
}

/* Apply the function of STEP to three words of the state, and return the result.  Sets *WORD to the
 * index of the block's word that this step adds. */
static uint32_t mix(unsigned int step, uint32_t b, uint32_t c, uint32_t d, unsigned int *word)
{
	switch (step / 16) {
	case 0:
		*word = step;
		return (b & c) | (~b & d);
	case 1:
		*word = (5 * step + 1) % 16;
		return (d & b) | (~d & c);
	case 2:
		*word = (3 * step + 5) % 16;
		return b ^ c ^ d;
	default:
		*word = 7 * step % 16;
		return c ^ (b | ~d);
	}
}

static void add_block(uint32_t state[4], const unsigned char block[BLOCK])
{
	uint32_t words[16], a = state[0], b = state[1], c = state[2], d = state[3];

	for (unsigned int i = 0; i < 16; i++)
		words[i] = (uint32_t)block[4 * i] | (uint32_t)block[4 * i + 1] << 8 |
		           (uint32_t)block[4 * i + 2] << 16 | (uint32_t)block[4 * i + 3] << 24;
	for (unsigned int step = 0; step < BLOCK; step++) {
		unsigned int word;
		uint32_t mixed = mix(step, b, c, d, &word) + a + sines[step] + words[word];

		a = d;
		d = c;
		c = b;
		b += rotate(mixed, rotations[step / 16][step % 4]);
	}
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
}

static void digest(const unsigned char *data, size_t length, unsigned char sum[DIGEST])
{
	uint32_t state[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
	uint64_t bits = (uint64_t)length * 8;
	unsigned char last[2 * BLOCK] = {0};
	size_t rest;

	for (; length >= BLOCK; data += BLOCK, length -= BLOCK)
		add_block(state, data);
	memcpy(last, data, length);
	last[length] = 0x80;
	rest = length < LENGTH_AT ? BLOCK : 2 * BLOCK;
	for (unsigned int i = 0; i < 8; i++)
		last[rest - 8 + i] = (unsigned char)(bits >> (8 * i));
	for (size_t at = 0; at < rest; at += BLOCK)
		add_block(state, last + at);
	for (unsigned int i = 0; i < DIGEST; i++)
		sum[i] = (unsigned char)(state[i / 4] >> (8 * (i % 4)));
}

void md5_base64(const void *data, size_t length, char text[MD5_BASE64])
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	unsigned char sum[DIGEST + 2] = {0};

	digest(data, length, sum);
	for (unsigned int i = 0, used = 0; i < DIGEST; i += 3) {
		uint32_t three = (uint32_t)sum[i] << 16 | (uint32_t)sum[i + 1] << 8 | sum[i + 2];

		for (int shift = 18; shift >= 0; shift -= 6)
			text[used++] = digits[three >> shift & 63];
	}
	strcpy(text + MD5_BASE64 - 3, "==");
}

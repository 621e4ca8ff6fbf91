/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DECODER_H
#define HEDDLE_DECODER_H

/*
 * heddle/decoder.h - continue sequences of tokens with a trained network.
 *
 * A decoder is a network that has read the tokens of a sequence and scores the one that may follow:
 * input_ids -> logits, with or without the keys and values of the tokens before
 * (past_key_values.N.key -> present.N.key), as exporters of GPT-2, Llama and others write them.
 *
 * A decoder object has a number of sequences at different positions. They may begin and end
 * between any two steps. A step reads the prompt of one sequence that has just begun, and gives
 * all others one token, computed together.
 *
 * The keys and values of tokens stay where they are: a step writes those of the new tokens only.
 * Their memory grows by buckets.
 *
 * Threads:  a decoder object belongs to one thread at a time, not in a task. Other requests of its
 *           network may be in flight.
 * Errors:   functions return heddle_status; `why` has a sentence.
 * Lifetime: a decoder object ends before its network.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/nn.h"
#include "heddle/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A decoder object. */
typedef struct heddle_decoder heddle_decoder;

/* Options; zero is a default everywhere. */
struct heddle_decoder_opts {
    size_t size;
    unsigned max_sequences; /* at once; 0: 1 */
    uint64_t max_tokens;    /* of a sequence, with its prompt; 0: 2^20. A network may have its own
                               limit, which shows when a sequence reaches it */
    uint64_t max_bytes;     /* of keys and values; 0: any number. While they grow, the old ones are
                               there too, for a moment */
    char *why;              /* a sentence; may be NULL */
    size_t why_bytes;
};

/*
 * Prepares a network for this use.
 *
 * HEDDLE_OK      *out is yours; end it with heddle_decoder_destroy()
 * HEDDLE_EINVAL  the inputs and outputs are not those of a decoder
 * HEDDLE_ENOMEM
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status
heddle_decoder_create(heddle_nn *net, const struct heddle_decoder_opts *opts, heddle_decoder **out);
/* Ends its sequences as well. NULL is fine. */
HEDDLE_API void heddle_decoder_destroy(heddle_decoder *d);

/* How the next token is chosen. Zero: the one with the highest score. */
struct heddle_decoder_choice {
    size_t size;
    double temperature; /* scores are divided by it; 0: the highest score, nothing is drawn */
    unsigned top_k;     /* only the k highest scores; 0: all */
    double top_p;       /* of these the most likely ones, until their sum is p; 0: all */
    uint64_t seed;      /* token i of a sequence is a function of the scores, seed and i */
};

/*
 * Begins a sequence. The prompt is copied.
 *
 * most     tokens of the sequence, with its prompt: room that it may need; 0: opts.max_tokens
 * choice   NULL: zero
 *
 * HEDDLE_OK         *sequence is its number until heddle_decoder_end()
 * HEDDLE_AGAIN      as many sequences as there may be, or no room for the keys and values until
 *                   others end
 * HEDDLE_EOVERFLOW  `most` tokens do not fit, even alone
 * HEDDLE_EINVAL     no prompt, a token that the network does not have, a choice that makes no sense
 * HEDDLE_ENOMEM
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status
heddle_decoder_begin(heddle_decoder *d, const int64_t *prompt, size_t n, uint64_t most,
                     const struct heddle_decoder_choice *choice, unsigned *sequence);
/* Ends a sequence. */
HEDDLE_API void heddle_decoder_end(heddle_decoder *d, unsigned sequence);

/* What a step has done for a sequence. */
struct heddle_decoder_token {
    unsigned sequence;
    heddle_status st; /* HEDDLE_OK: `token` follows. Others: the sequence has failed, and is to be
                            ended; heddle_decoder_why() has the sentence */
    int64_t token;
    uint64_t reserved[2];
};

/*
 * Runs a step and waits for it. Each sequence advances by at most one token; *n of out[] are
 * filled. *n 0: there are no sequences.
 *
 * max   not less than the sequences that there are, or HEDDLE_EINVAL
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_decoder_step(heddle_decoder *d,
                                                             struct heddle_decoder_token *out,
                                                             unsigned max, unsigned *n);

/* The scores from which the last token of a sequence was chosen; NULL: none yet. They stay until
 * the next step. */
HEDDLE_API const float *heddle_decoder_get_logits(const heddle_decoder *d, unsigned sequence,
                                                  size_t *n);
/* The sentence of the last failure. */
HEDDLE_API const char *heddle_decoder_why(const heddle_decoder *d);

/* What a decoder object is and has. */
struct heddle_decoder_info {
    size_t size;
    bool has_past;        /* false: each step reads the whole sequence again */
    bool is_in_place;     /* keys and values stay where they are; false: they are passed on, or none
                             have been computed yet */
    unsigned sequences;   /* now */
    uint64_t room_tokens; /* for which there is memory now, of each sequence */
    uint64_t room_bytes;  /* of keys and values now */
    uint64_t vocabulary;  /* tokens that the network knows; 0: not known yet */
};
/* Set info->size before. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_decoder_get_info(const heddle_decoder *d,
                                                                 struct heddle_decoder_info *info);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_DECODER_H */

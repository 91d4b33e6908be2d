/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures and breaks texts.
 */
#include "harness/study/figure_text.h"

#include <stdio.h>
#include <string.h>

/* Advance widths of DejaVu Sans, in thousandths of its size, from the blank to the tilde. */
static const short widths[] = {318,  401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337,
                               636,  636, 636, 636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531,
                               1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863, 748, 787,
                               603,  787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500,
                               500,  613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612,
                               635,  635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838};

/* A character beyond ASCII, such as the sign of multiplication, is counted once and as wide. */
static int letter_width(char letter) {
    unsigned char byte = (unsigned char)letter;
    return byte >= 0xC0 ? 838 : byte < ' ' || byte > '~' ? 0 : widths[byte - ' '];
}

/* Of a line's first `length` bytes. */
static double part_width(const char *text, size_t length, double size) {
    long sum = 0;
    for (size_t i = 0; i < length; i++) {
        sum += letter_width(text[i]);
    }
    return (double)sum * size / 1000;
}

double hx_text_width(const char *text, double size) {
    double most = 0;
    for (;;) {
        size_t length = strcspn(text, "\n");
        double width = part_width(text, length, size);
        most = width > most ? width : most;
        if (text[length] == '\0') {
            return most;
        }
        text += length + 1;
    }
}

static int text_lines(const char *text) {
    int lines = 1;
    for (; (text = strchr(text, '\n')) != NULL; text++) {
        lines++;
    }
    return lines;
}

int hx_text_wrap(const char *text, double size, double width, char *wrapped, size_t capacity) {
    char *start = wrapped, *blank = NULL;
    snprintf(wrapped, capacity, "%s", text);
    for (char *at = wrapped; *at != '\0'; at++) {
        if (*at == '\n') {
            start = at + 1;
            blank = NULL;
            continue;
        }
        if (blank != NULL && part_width(start, (size_t)(at - start) + 1, size) > width) {
            *blank = '\n';
            start = blank + 1;
            blank = NULL;
        }
        blank = *at == ' ' ? at : blank;
    }
    return text_lines(wrapped);
}

void hx_text_number(double number, char *text, size_t capacity) {
    static const struct {
        double unit;
        const char *name;
    } units[] = {{1e9, " G"}, {1e6, " M"}, {1e3, " K"}};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (number >= 1e4 && number >= units[i].unit) {
            snprintf(text, capacity, "%.4g%s", number / units[i].unit, units[i].name);
            return;
        }
    }
    snprintf(text, capacity, "%.4g", number);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Cubins: ELF files whose kernels are the global functions of their symbol table. What a kernel
 * takes is in its section .nv.info.NAME, a list of attributes {format, code, size or value}. */
#define _GNU_SOURCE
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "fake.h"

#define MACHINE_CUDA 190

/* Attribute formats, and the codes that matter here. */
enum { FORMAT_SIZED = 4 };
enum { ATTRIBUTE_MAX_THREADS = 0x05, ATTRIBUTE_PARAM = 0x17, ATTRIBUTE_REGISTERS = 0x2f };

typedef struct elf {
    const unsigned char *bytes;
    const Elf64_Ehdr *head;
    const Elf64_Shdr *sections;
    const char *names;
} elf;

bool fake_is_elf(const void *image)
{
    return memcmp(image, ELFMAG, SELFMAG) == 0;
}

static const Elf64_Shdr *section_find(const elf *e, const char *prefix, const char *name)
{
    size_t length = strlen(prefix);

    for (unsigned i = 0; i < e->head->e_shnum; i++) {
        const char *own = e->names + e->sections[i].sh_name;
        if (strncmp(own, prefix, length) == 0 && strcmp(own + length, name) == 0)
            return &e->sections[i];
    }
    return NULL;
}

static uint32_t word(const unsigned char *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof value);
    return value;
}

/* {index, ordinal : 16 | offset : 16, flags with the size from bit 18} */
static void read_param(fake_kernel_info *info, const unsigned char *at)
{
    uint32_t ordinal = word(at + 4) & 0xffffu;

    if (ordinal >= FAKE_PARAMS)
        return;
    info->offset[ordinal] = word(at + 4) >> 16;
    info->bytes[ordinal] = word(at + 8) >> 18;
    if (ordinal >= info->param_count)
        info->param_count = ordinal + 1;
}

static void read_attributes(const elf *e, fake_kernel_info *info)
{
    const Elf64_Shdr *section = section_find(e, ".nv.info.", info->name);

    info->max_threads = 1024;
    if (section == NULL)
        return;
    info->knows_params = true;
    const unsigned char *at = e->bytes + section->sh_offset;
    const unsigned char *end = at + section->sh_size;
    while (end - at >= 4) {
        size_t size = at[0] == FORMAT_SIZED ? (size_t)at[2] | (size_t)at[3] << 8 : 0;
        if ((size_t)(end - at) - 4 < size)
            return;
        if (at[1] == ATTRIBUTE_PARAM && size >= 12)
            read_param(info, at + 4);
        if (at[1] == ATTRIBUTE_MAX_THREADS && size >= 12)
            info->max_threads = (int)(word(at + 4) * word(at + 8) * word(at + 12));
        at += 4 + size;
    }
}

/* .nv.info holds {symbol, registers} of all kernels. */
static void read_registers(const elf *e, uint32_t symbol, fake_kernel_info *info)
{
    const Elf64_Shdr *section = section_find(e, ".nv.info", "");

    if (section == NULL)
        return;
    const unsigned char *at = e->bytes + section->sh_offset;
    const unsigned char *end = at + section->sh_size;
    while (end - at >= 4) {
        size_t size = at[0] == FORMAT_SIZED ? (size_t)at[2] | (size_t)at[3] << 8 : 0;
        if ((size_t)(end - at) - 4 < size)
            return;
        if (at[1] == ATTRIBUTE_REGISTERS && size >= 8 && word(at + 4) == symbol)
            info->registers = (int)word(at + 8);
        at += 4 + size;
    }
}

static void read_symbols(const elf *e, const Elf64_Shdr *table, fake_image *out)
{
    const Elf64_Sym *symbols = (const Elf64_Sym *)(const void *)(e->bytes + table->sh_offset);
    const char *text = (const char *)e->bytes + e->sections[table->sh_link].sh_offset;
    size_t count = table->sh_size / sizeof *symbols;

    for (size_t i = 0; i < count; i++) {
        const char *name = text + symbols[i].st_name;
        unsigned binding = ELF64_ST_BIND(symbols[i].st_info);
        if (ELF64_ST_TYPE(symbols[i].st_info) != STT_FUNC ||
            (binding != STB_GLOBAL && binding != STB_WEAK) ||
            section_find(e, ".nv.info.", name) == NULL)
            continue;
        fake_kernel_info *info = fake_image_add(out, name, strlen(name));
        read_attributes(e, info);
        read_registers(e, (uint32_t)i, info);
        const Elf64_Shdr *shared = section_find(e, ".nv.shared.", name);
        if (shared != NULL)
            info->shared_bytes = (int)shared->sh_size;
        /* Since sm_90 the first kilobyte is the system's, and not counted as the kernel's. */
        if (info->shared_bytes >= 1024 && section_find(e, ".nv.shared.reserved.0", "") != NULL)
            info->shared_bytes -= 1024;
    }
}

bool fake_elf_read(const void *image, fake_image *out, char *error, size_t bytes)
{
    elf e = {.bytes = image, .head = image};

    if (e.head->e_ident[EI_CLASS] != ELFCLASS64 || e.head->e_machine != MACHINE_CUDA ||
        e.head->e_shentsize != sizeof(Elf64_Shdr) || e.head->e_shstrndx >= e.head->e_shnum) {
        (void)snprintf(error, bytes, "an ELF file that is no cubin");
        return false;
    }
    e.sections = (const Elf64_Shdr *)(const void *)(e.bytes + e.head->e_shoff);
    e.names = (const char *)e.bytes + e.sections[e.head->e_shstrndx].sh_offset;
    /* The architecture moved from the flags' first byte to their second with version 8. */
    out->arch = (int)(e.head->e_flags >> (e.head->e_ident[EI_ABIVERSION] >= 8 ? 8 : 0) & 0xffu);
    for (unsigned i = 0; i < e.head->e_shnum; i++) {
        if (e.sections[i].sh_type == SHT_SYMTAB)
            read_symbols(&e, &e.sections[i], out);
    }
    return true;
}

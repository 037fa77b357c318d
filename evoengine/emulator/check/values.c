/* Two threads of a block that write the same value do not race: it does not matter which comes first.
 *
 * A checker sees a write before it is executed. Whether it changed anything is seen at the next event of the same host thread. */
#include "shadow.h"

int memcmp(const void *, const void *, unsigned long);

void settle_writes(Checker *c) {
    for (ev_u32 i = 0; i < c->doubtful; i++) {
        DoubtfulWrite *write = &c->writes[i];
        if (memcmp((const void *)write->address, write->before, write->bytes))
            report(c, write->finding);
    }
    c->doubtful = 0;
}

void doubt_write(Checker *c, Finding finding, ev_u64 address, ev_u32 bytes) {
    DoubtfulWrite *last = c->doubtful ? &c->writes[c->doubtful - 1] : NULL;
    ev_u32 joined = last && last->finding.thread == finding.thread && last->address + last->bytes == address;
    if (joined && last->bytes + bytes <= WIDEST_ACCESS) {
        memcpy(last->before + last->bytes, (const void *)address, bytes);
        last->bytes += bytes;
        return;
    }
    if (c->doubtful == DOUBTFUL) {
        report(c, finding);
        return;
    }
    DoubtfulWrite *write = &c->writes[c->doubtful++];
    write->finding = finding;
    write->address = address;
    write->bytes = bytes;
    memcpy(write->before, (const void *)address, bytes);
}
